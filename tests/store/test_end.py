"""When the data have ended: what is left goes, knowingly short, or is held."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.ledger import audit, explain
from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

Row = dict[str, Any]
FLUSH = {"policy": "flush_partial"}
# (producer, in flight, is it exhausted, seconds since it said so)
Beat = tuple[str, int, bool, float]


def beat(book: Book, clock: "FakeClock", beats: Sequence[Beat]) -> None:
    """Let producers say what they are making, each its time ago, and come back to the present."""
    now = clock.now
    for producer, in_flight, is_exhausted, seconds in sorted(beats, key=lambda b: -b[3]):
        clock.now = now
        clock.tick(-seconds)
        book.heartbeat(producer, in_flight=in_flight, is_exhausted=is_exhausted)
    clock.now = now


def sixty(sample: "Make", **changes: Any) -> list[Row]:
    """Return three samples of 20 turns: 60 of the 100 that complete a batch."""
    return [sample(key, turns=20, **changes) for key in range(3)]


# -- the policy ----------------------------------------------------------------------------------


def test_f09_what_is_left_is_held_and_why_says_that_the_source_is_exhausted(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append(sixty(sample))
    beat(book, clock, [("a", 0, True, 0)])

    made = book.assemble()

    assert (made.batch_id, made.blocker, made.missing_turns) == (None, "short", 40)
    sentence = explain(book.facts()).sentence
    assert sentence.startswith("short by 40 turns of 100; ")
    assert "source exhausted" in sentence


def test_what_is_left_goes_flagged_as_partial_and_passes_the_audit(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH)
    book.append(sixty(sample))
    beat(book, clock, [("a", 0, True, 0)])

    made = book.assemble("learner")

    assert (made.turns, made.samples, made.is_partial) == (60, 3, True)
    assert (made.missing_turns, made.blocker) == (0, None)
    (row,) = book.query("SELECT is_partial, turns, target_turns FROM batch").to_pylist()
    assert row == {"is_partial": True, "turns": 60, "target_turns": 100}
    assert book.sql("batches")["is_partial"].to_pylist() == [True]
    assert audit(book) == []
    assert book.assemble("learner").batch_id is None


def test_full_batches_go_first_and_are_not_partial(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH)
    book.append([sample(key, turns=20) for key in range(8)])
    beat(book, clock, [("a", 0, True, 0)])

    made = [book.assemble() for _ in range(3)]

    assert [(each.turns, each.is_partial) for each in made] == [
        (100, False),
        (60, True),
        (0, False),
    ]


# -- when the data have ended --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beats", "is_flushed"),
    [
        ([], False),
        ([("a", 0, False, 0)], False),
        ([("a", 0, True, 0)], True),
        ([("a", 1, True, 0)], False),
        ([("a", 1, True, 600)], False),
        ([("a", 1, True, 600.000001)], True),
        ([("a", 0, True, 601)], True),
        ([("a", 0, False, 601)], False),
        ([("a", 0, True, 0), ("b", 0, True, 0)], True),
        ([("a", 0, True, 0), ("b", 0, False, 0)], False),
        ([("a", 0, True, 0), ("b", 2, True, 0)], False),
        ([("a", 0, True, 0), ("b", 2, False, 600)], False),
        ([("a", 0, True, 0), ("b", 2, False, 601)], True),
        ([("a", 0, True, 90), ("a", 0, False, 0)], False),
        ([("a", 0, False, 90), ("a", 0, True, 0)], True),
        ([("a", 3, True, 90), ("a", 0, True, 0)], True),
    ],
)
def test_the_data_have_ended_when_every_live_producer_said_so_and_makes_nothing_any_more(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    beats: list[Beat],
    is_flushed: bool,
) -> None:
    book = open_book(end=FLUSH)
    book.append(sixty(sample))
    beat(book, clock, beats)

    made = book.assemble()

    assert made.is_partial == is_flushed
    assert made.samples == (3 if is_flushed else 0)


def test_a_producer_that_comes_back_ends_the_end(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH)
    book.append(sixty(sample))
    beat(book, clock, [("a", 0, True, 0)])
    flushed = book.assemble()
    clock.tick(1)
    beat(book, clock, [("a", 4, False, 0)])
    book.append([sample(key, turns=20) for key in range(3, 6)])

    held = book.assemble()

    assert (flushed.is_partial, held.batch_id, held.pending_turns) == (True, None, 60)
    clock.tick(1)
    beat(book, clock, [("a", 0, True, 0)])
    assert book.assemble().turns == 60


def test_the_end_is_seen_by_a_book_that_is_opened_after_it(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH)
    book.append(sixty(sample))
    beat(book, clock, [("a", 0, True, 0)])
    book.close()

    assert open_book(end=FLUSH).assemble().is_partial


# -- never empty ---------------------------------------------------------------------------------

NOTHING: dict[str, tuple[Row, Row]] = {
    "nothing ever came": ({}, {}),
    "only broken environments": ({"status": "env_error"}, {}),
    "rewards that are awaited": ({"reward": None}, {}),
    "all over the discard line": ({"weight_version": 5}, {}),
    "another stream's": (
        {"origin": "replay", "parent_sample_id": "p", "environment_snapshot_id": "e"},
        {},
    ),
    "all rewards equal": ({"reward": 1.0}, {}),
    "all held by the failure quota": (
        {"reward": 0.0},
        {"default_task_type": {"failure_share": 0.5}},
    ),
    "all held by the truncation line": (
        {"status": "truncated", "limit": "turns"},
        {"batch": {"turns": 100, "truncated_share": 0.1}},
    ),
    "all too large": ({}, {"batch": {"turns": 100, "max_unit_turns": 19}}),
}


@pytest.mark.parametrize(("changes", "sections"), NOTHING.values(), ids=NOTHING)
def test_where_nothing_can_go_there_is_no_batch_however_often_it_is_asked_for(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", *, changes: Row, sections: Row
) -> None:
    book = open_book(end=FLUSH, **sections)
    book.publish(10)
    if changes or sections:
        book.append(sixty(sample, **{"weight_version": 10} | changes))
    beat(book, clock, [("a", 0, True, 0)])

    made = [book.assemble() for _ in range(2)]

    assert [each.batch_id for each in made] == [None, None]
    assert [each.samples for each in made] == [0, 0]
    is_flat = changes == {"reward": 1.0}
    assert made[0].blocker == ("no_gradient" if is_flat else "short")
    assert book.query("SELECT * FROM batch").num_rows == 0


# -- no rule is broken ---------------------------------------------------------------------------


def test_a_flush_keeps_the_failure_quota_and_the_truncation_line(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(
        end=FLUSH,
        batch={"turns": 100, "truncated_share": 0.1},
        default_task_type={"failure_share": 0.5},
    )
    rewards = {"passed": 1.0, "failed1": 0.0, "failed2": 0.1, "failed3": 0.2}
    cut = {"status": "truncated", "limit": "turns", "turns": 10, "reward": 0.9}
    book.append(
        [sample(key, turns=15, reward=reward) for key, reward in rewards.items()]
        + [sample(f"cut{key}", **cut) for key in range(2)]
    )
    beat(book, clock, [("a", 0, True, 0)])

    made = book.assemble()

    rows = book.batch(str(made.batch_id)).rows.to_pylist()
    failed = sum(row["reward"] < 0.5 for row in rows)
    cuts = sum("cut" in row["sample_id"] for row in rows)
    assert made.is_partial
    assert (failed, cuts) == (1, 1)
    assert audit(book) == []
    assert book.assemble().batch_id is None


def test_a_flush_takes_groups_whole_and_leaves_those_that_have_not_settled(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH, groups={"size": 3})
    members = [(0, "a"), (1, "a"), (2, "a"), (3, "b"), (4, "b")]
    book.append([sample(key, group_id=group, turns=10) for key, group in members])
    beat(book, clock, [("a", 0, True, 0)])

    made = book.assemble()

    ids = book.batch(str(made.batch_id)).rows.column("sample_id").to_pylist()
    assert (made.is_partial, sorted(ids)) == (True, ["s0", "s1", "s2"])
    assert audit(book) == []


# -- waiting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "batches"), [("hold", 1), ("flush_partial", 2)])
def test_a_learner_that_waits_gets_what_is_left_and_then_an_end(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", *, policy: str, batches: int
) -> None:
    book = open_book(end={"policy": policy})
    book.append([sample(key, turns=20) for key in range(8)])
    beat(book, clock, [("a", 0, True, 0)])
    began = time.monotonic()

    taken = list(book.batches("learner", wait_seconds=0.3))

    assert len(taken) == batches
    assert all(batch.rows.num_rows > 0 for batch in taken)
    assert time.monotonic() - began >= 0.3


def test_a_learner_waits_no_longer_for_what_no_batch_can_be_made_of(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(end=FLUSH)
    book.append(sixty(sample, reward=1.0))
    beat(book, clock, [("a", 0, True, 0)])

    taken = list(book.batches("learner", wait_seconds=0.3))

    assert taken == []
    assert book.query("SELECT kind FROM incident").to_pylist() == [{"kind": "no_gradient"}]
