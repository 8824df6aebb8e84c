"""`rollbook why` on books that are stalled in every way: its first sentence is right."""

import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from deltalake import DeltaTable

from rollbook.app.commands.why import lines
from rollbook.ledger import explain
from rollbook.ledger.postmortem import stamp
from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.app.conftest import Call
    from tests.store.workers import store_worker as worker
else:
    sys.path.append(str(Path(__file__).parents[1] / "store" / "workers"))
    import store_worker as worker

Row = dict[str, Any]


class Open(Protocol):
    """Opens the book in ROLLBOOK_BOOK under settings that `why` will read too."""

    def __call__(self, settings: str = "") -> Book:
        """Return it."""
        ...


@pytest.fixture
def clock() -> worker.FakeClock:
    """Return a clock ten minutes and a second before the moment at which `why` is asked."""
    return worker.FakeClock(datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=601))


@pytest.fixture
def open_book(book: Path, clock: worker.FakeClock) -> Iterator[Open]:
    opened: list[Book] = []

    def open_under(settings: str = "") -> Book:
        text = "[batch]\nturns = 100\n" + settings
        (book / "rollbook.toml").write_text(text)
        given = Settings.model_validate(tomllib.loads(text))
        opened.append(Book.open(book, given, clock=clock))
        return opened[-1]

    yield open_under
    for each in opened:
        each.close()


@pytest.fixture
def rows(clock: worker.FakeClock) -> "Make":
    def make(turns: Sequence[int], name: str = "", **changes: Any) -> list[Row]:
        return [
            worker.sample(
                f"{name}{nth}",
                **{
                    "turns": count,
                    "started_at": clock.now - timedelta(seconds=60),
                    "finished_at": clock.now,
                }
                | changes,
            )
            for nth, count in enumerate(turns)
        ]

    return make


class Make(Protocol):
    """Makes samples of so many turns that ended just now."""

    def __call__(self, turns: Sequence[int], name: str = "", **changes: Any) -> list[Row]:
        """Return the rows."""
        ...


class Why:
    """What `why` prints; asked once, when it is first wanted."""

    def __init__(self, call: "Call") -> None:
        self._call = call

    @cached_property
    def out(self) -> str:
        """Return all of it."""
        ran = self._call("why")
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    @property
    def first(self) -> str:
        """Return the sentence."""
        return self.out.splitlines()[0]

    @property
    def advice(self) -> str:
        """Return what to do."""
        return self.out.splitlines()[1].removeprefix("What to do: ")

    @property
    def also(self) -> list[str]:
        """Return what stands under "Also:"."""
        _, _, listed = self.out.partition("\nAlso:\n")
        return [line.strip() for line in listed.splitlines()]


@pytest.fixture
def why(call: "Call") -> Why:
    return Why(call)


# -- the eight ways ------------------------------------------------------------------------------


def test_f09_producers_are_dead_and_the_source_is_exhausted(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    """What the dead producer last said is in flight counts for nothing."""
    book = open_book()
    book.append(rows([30, 30]))
    book.heartbeat("p", in_flight=9, in_flight_turns=900, is_exhausted=True)

    at = stamp(clock.now)
    assert why.first == (
        f"short by 40 turns of 100; no live producer since {at}; source exhausted."
    )
    assert why.also == ["end.policy is hold: 60 turns wait", f"last sample arrived {at}"]


def test_producers_are_dead_though_tasks_are_left(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([30, 30]))
    book.heartbeat("p", in_flight=2, in_flight_turns=200)

    assert why.first == f"short by 40 turns of 100; no live producer since {stamp(clock.now)}."
    assert why.advice == "restart the producers."


def test_the_data_are_exhausted(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([30, 30]))
    arrived = stamp(clock.now)
    clock.tick(300)
    book.heartbeat("p", in_flight=0, is_exhausted=True)
    said = stamp(clock.now)
    clock.tick(60)
    book.heartbeat("p", in_flight=0, is_exhausted=True)

    assert why.first == (
        f"short by 40 turns of 100; source exhausted since {said}; last sample arrived {arrived}."
    )


def test_a_source_is_not_exhausted_while_another_producer_has_tasks(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([30, 30]))
    clock.tick(300)
    book.heartbeat("done", in_flight=0, is_exhausted=True)
    book.heartbeat("busy", in_flight=1, in_flight_turns=20)

    assert "not enough samples in flight (20 of 40 turns)" in why.first
    assert "exhausted" not in why.out


def test_f09_too_little_is_in_flight_and_stragglers_are_not_to_blame(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([30, 30]))
    arrived = stamp(clock.now)
    book.heartbeat("dead", in_flight=9, in_flight_turns=900)
    clock.tick(300)
    book.heartbeat("live", in_flight=2, in_flight_turns=20)

    assert why.first == (
        "short by 40 turns of 100; not enough samples in flight (20 of 40 turns);"
        f" last sample arrived {arrived}."
    )


def test_f09_the_gate_holds_rows_without_a_weight_version_and_not_a_gradient(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([25] * 20, reward=1.0, weight_version=None))

    at = stamp(clock.now)
    assert why.first == (
        f"short by 100 turns of 100; gate: weight_version missing × 20 since {at}."
    )
    assert "gradient" not in why.out


def test_the_gate_refuses(why: Why, open_book: Open, rows: Make, clock: worker.FakeClock) -> None:
    book = open_book()
    book.append([row | {"env_secnds": 3} for row in rows([25] * 4)])

    at = stamp(clock.now)
    assert why.first == (
        f"short by 100 turns of 100; gate: env_secnds unknown_field × 4 since {at}."
    )


def test_the_failure_quota_holds(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book("[default_task_type]\nfailure_share = 0.25\n")
    book.append([*rows([30]), *rows([10] * 9, "failed", reward=0.0)])

    at = stamp(clock.now)
    assert why.first == (
        f"short by 60 turns of 100; the failure quota holds 80 turns of coding since {at}."
    )


def test_the_discard_line_takes(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append([*rows([25] * 4), *rows([20], "long", task_type="long")])
    clock.tick(60)
    book.publish(9)
    book.assemble()

    assert why.first == (
        "short by 100 turns of 100; the discard line took 120 turns, most of coding"
        f" for age_versions since {stamp(clock.now)}."
    )


def test_the_discard_line_is_told_before_a_pass_has_discarded(
    why: Why, open_book: Open, rows: Make
) -> None:
    book = open_book()
    book.append(rows([25] * 4))
    book.publish(9)

    assert "the discard line took 100 turns of coding for age_versions" in why.first


def test_the_weights_are_not_published(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.publish(2)
    published = stamp(clock.now)
    clock.tick(60)
    book.append(rows([25] * 4, weight_version=3))

    assert why.first == (
        "short by 100 turns of 100; 100 turns were made by weights above 2, the newest"
        f" published (up to 3) since {published}."
    )


def test_the_learner_does_not_ack(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book("lease_seconds = 60\n")
    book.append(rows([25] * 5))
    made = book.assemble("trainer-0")

    assert why.first == (
        f"short by 75 turns of 100; batch {made.batch_id} (100 turns) is held by trainer-0,"
        f" not acked since {stamp(clock.now)}."
    )


def test_a_learner_within_its_lease_is_to_blame_only_if_the_next_batch_is_ready(
    call: "Call", open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([25] * 5))
    made = book.assemble("trainer-0")
    until = stamp(clock.now + timedelta(hours=1))

    before, after = Why(call), Why(call)

    assert "no producer reports" in before.first
    assert f"batch {made.batch_id} is held by trainer-0 until {until}" in before.also
    book.append(rows([25] * 3, "more"))
    assert after.first.startswith(f"batch {made.batch_id} (100 turns) is held by trainer-0")


# -- its kind ------------------------------------------------------------------------------------


def test_nothing_was_ever_submitted(why: Why, open_book: Open) -> None:
    open_book()

    assert why.first == "short by 100 turns of 100; nothing was ever submitted."
    assert why.also == ["no sample ever arrived"]


def test_where_no_producer_reports_nobody_claims_that_nothing_is_in_flight(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    open_book().append(rows([30, 30]))

    assert why.first == (
        "short by 40 turns of 100; no producer reports what it is making;"
        f" last sample arrived {stamp(clock.now)}."
    )
    assert "in flight" not in why.out
    assert "heartbeats" in why.advice


def test_enough_is_in_flight(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([30, 30]))
    arrived = stamp(clock.now)
    clock.tick(300)
    book.heartbeat("p", in_flight=2, in_flight_turns=40)

    assert why.first == (
        f"short by 40 turns of 100; 2 samples in flight (40 turns); last sample arrived {arrived}."
    )


def test_everything_awaits_its_reward(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    open_book().append(rows([25] * 4, reward=None))

    assert why.first == (
        "short by 100 turns of 100; 100 turns in 4 samples await their reward"
        f" since {stamp(clock.now)}."
    )


def test_groups_have_not_settled(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    open_book("[groups]\nsize = 8\n").append(rows([25] * 7, group_id="g"))

    assert why.first == (
        "short by 100 turns of 100; 175 turns stand in groups that have not settled"
        f" since {stamp(clock.now)}."
    )


def test_flat_groups_are_not_called_the_discard_line(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book("[groups]\nsize = 4\n")
    book.append(rows([25] * 4, group_id="g", reward=1.0))
    book.assemble()

    assert why.first == (
        "short by 100 turns of 100; groups whose rewards are all equal took 100 turns"
        f" of coding since {stamp(clock.now)}."
    )


def test_the_truncation_line_holds(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book("truncated_share = 0.1\n")
    book.append(rows([25] * 4, status="truncated", limit="turns"))

    assert why.first == (
        "short by 100 turns of 100; the truncation line holds 100 turns of coding"
        f" since {stamp(clock.now)}."
    )


def test_nothing_carries_a_gradient_and_the_incident_is_told(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([25] * 4, reward=1.0))
    ready = stamp(clock.now)
    clock.tick(60)
    book.assemble()

    assert why.first == (
        f"100 turns are ready, but their rewards are all equal (too easy) since {ready}."
    )
    assert why.also == [f"incident no_gradient of train open since {stamp(clock.now)}"]


def test_a_least_share_is_not_met(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    text = '[shares]\nleast_wait_seconds = 6000\n[shares.least]\n"hard/any" = 0.5\n'
    open_book(text).append(rows([25] * 4))

    assert why.first == (
        f"100 turns are ready, but hard/any below the least share since {stamp(clock.now)}."
    )


def test_a_released_batch_is_ready_again(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([25] * 4))
    ready = stamp(clock.now)
    clock.tick(60)
    book.release(str(book.assemble("trainer-0").batch_id))

    assert why.first == f"100 turns are ready and nobody assembles since {ready}."


def test_a_batch_that_nobody_takes(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([25] * 4))
    made = book.assemble()

    assert why.first == (
        f"short by 100 turns of 100; batch {made.batch_id} (100 turns) waits for a learner"
        f" to take it since {stamp(clock.now)}."
    )


def test_f03_broken_environments_are_named_with_their_number(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(rows([1] * 128, status="env_error", reward=None))
    book.assemble()

    at = stamp(clock.now)
    assert why.first == (
        f"short by 100 turns of 100; env_error × 128, never trained on since {at}."
    )
    assert f"incident dead_streak of train open since {at}" in why.also


def test_several_small_causes_are_named_with_their_turns_and_no_more_than_suffice(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(
        [
            *rows([40]),
            *rows([35], "a", reward=None),
            *rows([30], "b", seed=None),
            *rows([10], "c", tenant=None),
        ]
    )

    at = stamp(clock.now)
    assert why.first == (
        f"short by 60 turns of 100; 35 turns in 1 sample await their reward since {at};"
        f" gate: seed missing × 1 since {at}."
    )
    assert f"gate: tenant missing × 1 since {at}" in why.also


# -- what is not to blame ------------------------------------------------------------------------


@pytest.mark.parametrize(("turns", "is_blamed"), [(25, False), (40, True)])
def test_a_refusal_is_blamed_only_if_it_could_have_filled_what_is_missing(
    why: Why, open_book: Open, rows: Make, turns: int, *, is_blamed: bool
) -> None:
    book = open_book()
    book.append([*rows([30, 30]), *rows([turns], "refused", tenant=None)])

    assert ("gate: tenant" in why.first) is is_blamed
    assert "gate: tenant missing × 1" in why.out


def test_what_was_refused_longer_ago_than_a_sample_may_wait_is_not_blamed(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book("[discard]\nmax_wait_seconds = 86400\n")
    clock.tick(-90_000)
    book.append(rows([25] * 400, "old", tenant=None))
    clock.tick(90_000)
    book.append(rows([30, 30]))

    assert "no producer reports" in why.first
    assert "gate" not in why.out


def test_what_was_lost_before_the_last_batch_is_not_blamed(
    why: Why, open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    book = open_book()
    book.append(
        [*rows([25] * 4), *rows([25] * 4, "x", tenant=None), *rows([50] * 2, "y", seed=None)]
    )
    clock.tick(60)
    book.ack(str(book.assemble().batch_id))

    assert "no producer reports" in why.first
    assert "gate" not in why.out


def test_a_refused_row_that_was_mended_or_came_twice_is_no_loss(
    why: Why, open_book: Open, rows: Make
) -> None:
    book = open_book()
    book.append(rows([90], tenant=None))
    book.append(rows([90]))
    book.append(rows([91]))

    assert "no producer reports" in why.first
    assert "gate" not in why.out


def test_the_other_stream_is_not_blamed(
    call: "Call", why: Why, open_book: Open, rows: Make
) -> None:
    replay = {"origin": "replay", "parent_sample_id": "s", "environment_snapshot_id": "e"}
    book = open_book()
    book.append([*rows([500], "x", **replay, tenant=None), *rows([500], "y", **replay, seed=None)])
    book.append(rows([500], "z", **replay, status="env_error"))

    ran = call("why", "--stream", "replay")

    assert why.first == "short by 100 turns of 100; nothing was ever submitted."
    assert "gate" not in why.out
    assert "× 1" in ran.out.splitlines()[0]


# -- how it is told ------------------------------------------------------------------------------


def test_a_source_that_is_exhausted_may_be_flushed(why: Why, open_book: Open, rows: Make) -> None:
    book = open_book('[end]\npolicy = "flush_partial"\n')
    book.append(rows([30, 30]))
    book.heartbeat("p", in_flight=0, is_exhausted=True)

    assert "a short batch can be made now" in why.advice
    assert "end.policy is flush_partial: the next pass flushes 60 turns" in why.also


def test_json_holds_the_sentence_and_every_blocker_with_its_turns(
    call: "Call", open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    open_book().append([*rows([60]), *rows([50], "a", reward=None), *rows([10], "b", seed=None)])

    found = call("why", "--json").document

    assert found["sentence"].startswith("short by 40 turns of 100; 50 turns in 1 sample await")
    assert (found["verdict"], found["missing_turns"]) == ("awaiting_reward", 40)
    assert [(b["name"], b["turns"]) for b in found["blockers"]] == [
        ("awaiting_reward", 50),
        ("evidence_missing", 10),
        ("no_reports", None),
    ]
    assert found["blockers"][0]["since"] == clock.now.isoformat()
    assert {row["reason"]: row["turns"] for row in found["funnel"]} == {
        "evidence_missing": 10,
        "awaiting_reward": 50,
        "ready": 60,
    }


def test_it_reads_well_on_a_terminal_of_80_columns(open_book: Open, rows: Make) -> None:
    book = open_book()
    many = [rows([2, 1], f"{nth}-", task_type=f"type-{nth}") for nth in range(13)]
    odd = {"task_type": "hard\x1b[2J"}
    book.append(
        [row for each in many for row in each]
        + rows([70], "x", **odd)
        + rows([700], "y", **odd, reward=None)
    )

    shown = lines(explain(book.facts()), 80)

    assert max(map(len, shown)) <= 80
    assert all(line.isprintable() for line in shown)
    assert shown[0].startswith("109 turns are ready and nobody assembles since")
    assert [line.split() for line in shown if line.startswith(("step", "waiting", "ready"))] == [
        ["step", "reason", "samples", "turns"],
        ["waiting", "awaiting_reward", "1", "700"],
        ["ready", "ready", "27", "109"],
    ]


# -- the past ------------------------------------------------------------------------------------


def test_a_batch_is_told_with_its_funnel_and_what_it_read(
    call: "Call", open_book: Open, rows: Make
) -> None:
    open_book().append(rows([50, 60]))
    batch_id = str(open_book().assemble().batch_id)

    ran = call("why", "--batch", batch_id)

    assert (ran.code, ran.err) == (0, "")
    first, *rest = ran.out.splitlines()
    assert first.startswith(f"{batch_id} was made at ")
    assert "110 turns of 100 in 2 samples; no pass found it blocked before." in first
    squeezed = [" ".join(line.split()) for line in rest]
    assert "assigned assigned coding 2 110" in squeezed
    assert any(line.startswith("read at table versions: dispositions ") for line in squeezed)
    assert f"under settings {open_book().settings.fingerprint}" in squeezed


def test_a_batch_that_derives_again_says_so_and_one_that_does_not_is_an_error(
    call: "Call", open_book: Open, rows: Make, book: Path
) -> None:
    open_book().append(rows([50, 60]))
    batch_id = str(open_book().assemble().batch_id)
    good = call("why", "--batch", batch_id, "--verify")
    DeltaTable(str(book / "dispositions")).update(
        predicate="sample_id = 's1'", updates={"reward": "0.0"}
    )

    bad = call("why", "--batch", batch_id, "--verify")
    told = call("why", "--batch", batch_id, "--verify", "--json")

    assert (good.code, good.out.splitlines()[-1]) == (
        0,
        "derived again: the same in all of 2 rows",
    )
    assert bad.code == 1
    assert "derived again: 2 rows differ" in bad.out
    assert told.code == 1
    assert told.document["derived"]["is_same"] is False
    assert [row["side"] for row in told.document["derived"]["differences"]] == ["derived", "noted"]


def test_a_moment_of_the_past_is_told_as_it_was(
    call: "Call", open_book: Open, rows: Make, clock: worker.FakeClock
) -> None:
    opened = open_book()
    opened.append(rows([50]))
    then = clock.now
    clock.tick(60)
    opened.append(rows([60], name="later"))

    ran = call("why", "--at", then.isoformat())

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("short by 50 turns of 100; no producer reports what it is making")
    assert call("why").out.startswith("110 turns are ready and nobody assembles")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--at", "yesterday"], "'yesterday' is no ISO 8601 time"),
        (["--at", "2026-01-01T00:00:00"], "has no time zone: add Z or an offset"),
        (["--at", "2026-01-01T00:00:00Z", "--batch", "b"], "--at and --batch are two questions"),
        (["--verify"], "--verify needs a batch: give --batch"),
        (["--stream", "reply"], "'reply' is not one of 'train', 'replay'"),
        (["--batch", "train-9"], "there is no batch 'train-9'"),
        (["--at", "2999-01-01T00:00:00Z"], "is still to come"),
    ],
)
def test_a_question_about_the_past_that_makes_no_sense_is_refused(
    call: "Call", open_book: Open, words: list[str], says: str
) -> None:
    open_book()

    ran = call("why", *words)

    assert ran.code
    assert says in ran.err
