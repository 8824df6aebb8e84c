"""The audit finds each way in which a book can be wrong, and nothing in one that is sound."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.ledger import audit, rules
from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.ledger.conftest import Damage
    from tests.store.workers import store_worker as worker

    Way = Callable[["Damage"], None]
else:
    import store_worker as worker

    Way = Callable

REPLAY = {
    "origin": "replay",
    "parent_sample_id": "sa0",
    "environment_snapshot_id": "snapshot-0",
}
UNKNOWN_SETTINGS = f"sha256:{'0' * 64}"


def good(count: int = 4, **changes: Any) -> list[dict[str, Any]]:
    """Return samples that make a sound batch if there are four of them."""
    return [
        worker.sample(f"x{nth}", reward=float(nth % 2 == 0), weight_version=10, **changes)
        for nth in range(count)
    ]


def changed(place: int, **changes: Any) -> list[dict[str, Any]]:
    """Return the samples of a sound batch, one of them changed."""
    rows = good()
    rows[place] |= changes
    return rows


def all_passed() -> list[dict[str, Any]]:
    """Return samples that make a full batch, all of one reward."""
    return [row | {"reward": 1.0} for row in good()]


def sample_in_two_batches(damage: "Damage") -> None:
    rows = [
        damage.about(50, "assigned", f"sb{nth}", batch_id="bad", ordinal=nth) for nth in range(4)
    ]
    stated = {"batch_id": "bad", "target_turns": 100, "turns": 100, "samples": 4}
    header = damage.header(50, **stated, truncated_turns=25)
    damage.append("dispositions", header, *rows)


def discarded_and_trained(damage: "Damage") -> None:
    damage.append("dispositions", damage.about(50, "trained", "sstale", batch_id="train-00000001"))


def discarded_after_training(damage: "Damage") -> None:
    row = damage.about(50, "discarded", "sa0", reason="sibling", reasons=["sibling"])
    damage.append("dispositions", damage.header(50, discarded=1), row)


def assigned_after_the_discard(damage: "Damage") -> None:
    damage.append("dispositions", damage.about(50, "released", "sstale"))


def rows_without_a_header(damage: "Damage") -> None:
    damage.append(
        "dispositions", damage.about(50, "assigned", "spending", batch_id="lost", ordinal=0)
    )


def two_headers(damage: "Damage") -> None:
    stated = {"batch_id": "train-00000003", "target_turns": 100, "turns": 100, "samples": 4}
    damage.append("dispositions", damage.header(50, **stated, truncated_turns=25))


def acked_without_its_samples(damage: "Damage") -> None:
    damage.append("dispositions", damage.decision(50, "acked", batch_id="train-00000003"))


def stored_twice(damage: "Damage") -> None:
    damage.append("samples", damage.stored("spending") | {"position": 77})


def two_at_one_position(damage: "Damage") -> None:
    damage.append("samples", damage.stored("spending") | {"sample_id": "sother"})


def a_call_too_many(damage: "Damage") -> None:
    row = damage.book.query("SELECT * FROM calls LIMIT 1").to_pylist()[0]
    damage.append("calls", row | {"call_id": "one-more"})


def decided_where_nobody_stands(damage: "Damage") -> None:
    row = damage.decision(50, "released", sample_id="snobody", position=77)
    damage.append("dispositions", row)


def without_settings(damage: "Damage") -> None:
    damage.append("dispositions", damage.header(50, settings_fingerprint=None))


def emits(samples: list[dict[str, Any]], /, **states: Any) -> Way:
    """Return a way to damage: emit these samples, the header changed by `states`."""
    return lambda damage: damage.emit(samples, states=states)


def discards(states: dict[str, Any] | None = None, **changes: Any) -> Way:
    """Return a way to damage: discard a sample, its row and the header changed."""
    return lambda damage: damage.discard(states=states, **changes)


OLD = timedelta(days=1, seconds=1)
STARTED = worker.START - OLD - timedelta(seconds=60)
# What was done to the book → the rules that it breaks, all of them.
WAYS: dict[str, tuple[Way, set[str]]] = {
    "a sample in two live batches": (sample_in_two_batches, {"two_live_batches"}),
    "discarded and trained": (discarded_and_trained, {"two_ends", "conservation"}),
    "trained and discarded": (discarded_after_training, {"two_ends", "conservation"}),
    "decided after its end": (assigned_after_the_discard, {"two_ends", "conservation"}),
    "a replay beside others": (
        emits(changed(2, **REPLAY)),
        {"replay_beside_resample"},
    ),
    "replays in the stream of originals": (
        emits([row | REPLAY for row in good()]),
        {"replay_beside_resample"},
    ),
    "short and not flagged": (emits(good(3)), {"short_batch"}),
    "short by one turn": (emits(changed(3, turns=24)), {"short_batch"}),
    "a header with other turns": (emits(good(), turns=125), {"batch_header"}),
    "a header with other samples": (emits(good(), samples=3), {"batch_header"}),
    "a header without turns": (emits(good(), turns=None), {"batch_header"}),
    "a header with other truncated turns": (emits(good(), truncated_turns=1), {"batch_header"}),
    "rows without a header": (rows_without_a_header, {"batch_header", "conservation"}),
    "two headers": (two_headers, {"batch_header"}),
    "goes on after its turns are complete": (emits(good(5)), {"overfull_batch"}),
    "a discard without a reason": (discards(reason=None), {"discard_unexplained"}),
    "a discard without a limit": (discards(limit=None), {"discard_unexplained"}),
    "a discard without settings": (
        discards({"settings_fingerprint": None}),
        {"discard_unexplained", "pass_settings"},
    ),
    "a discard by settings that are not stored": (
        discards({"settings_fingerprint": UNKNOWN_SETTINGS}),
        {"discard_unexplained", "pass_settings"},
    ),
    "a discard at the limit": (discards(age_versions=4), {"discard_below_limit"}),
    "a discard of unknown age": (discards(age_versions=None), {"discard_below_limit"}),
    "a discard that waited less than the limit": (
        discards(reason="wait_seconds", limit=60.0, age_seconds=60.0),
        {"discard_below_limit"},
    ),
    "a discard that its pass does not count": (discards({"discarded": 0}), {"discard_count"}),
    "a pass without settings": (without_settings, {"pass_settings"}),
    "a batch by settings that are not stored": (
        emits(good(), settings_fingerprint=UNKNOWN_SETTINGS),
        {"pass_settings"},
    ),
    "truncated turns over the line": (
        emits(changed(0, status="truncated", turns=31, limit="turns")),
        {"truncated_share"},
    ),
    "failed turns over the share": (emits(changed(2, reward=0.0)), {"failure_share"}),
    "failed turns over the share of a prefix": (emits(good()[::-1]), {"failure_share"}),
    "two samples of one id": (stored_twice, {"duplicate_sample"}),
    "two samples at one position": (two_at_one_position, {"duplicate_position"}),
    "a batch acked without its samples": (acked_without_its_samples, {"conservation"}),
    "trained on without an image": (
        emits(changed(0, image_digest=None, gaps=["image_digest"])),
        {"trained_without_evidence"},
    ),
    "trained on without an attempt": (
        emits(changed(0, attempt=None, gaps=["attempt"])),
        {"trained_without_evidence"},
    ),
    "trained on a broken environment": (
        emits(changed(0, status="env_error")),
        {"untrainable_trained"},
    ),
    "trained on what nobody graded": (
        emits(changed(0, reward=None)),
        {"untrainable_trained"},
    ),
    "over the cap in versions": (emits(changed(0, weight_version=5)), {"over_age"}),
    "over the cap in seconds": (
        emits(changed(0, started_at=STARTED, finished_at=worker.START - OLD)),
        {"over_age"},
    ),
    "over the cap of its class": (
        emits(changed(0, weight_version=3, duration_class="long")),
        {"over_age"},
    ),
    "nothing carries a gradient": (emits(all_passed()), {"batch_without_gradient"}),
    "a call that the ledger does not hold": (a_call_too_many, {"calls_ledger"}),
    "decided where no sample stands": (decided_where_nobody_stands, {"unknown_position"}),
}


def test_a_sound_book_breaks_no_rule(sound: Book) -> None:
    states = sound.sql("states").column("state").to_pylist()

    assert audit(sound) == []
    assert set(states) == {
        "assigned",
        "awaiting_reward",
        "discarded",
        "evidence_missing",
        "never_trainable",
        "pending",
        "trained",
    }


def test_an_empty_book_breaks_no_rule(empty: Book) -> None:
    assert audit(empty) == []


@pytest.mark.parametrize(("way", "broken"), WAYS.values(), ids=WAYS)
def test_each_damage_is_found_by_its_rules_and_by_no_others(
    sound: Book, damage: "Damage", way: Way, broken: set[str]
) -> None:
    way(damage)

    assert {offence.rule for offence in audit(sound)} == broken


def test_every_rule_has_a_damage_that_it_alone_or_first_finds() -> None:
    found = {rule for _, broken in WAYS.values() for rule in broken}

    assert found == set(rules())


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(good(), id="a plain one"),
        pytest.param(changed(0, weight_version=6), id="age = cap"),
        pytest.param(changed(0, weight_version=4, duration_class="long"), id="age = cap of class"),
        pytest.param(changed(0, status="truncated", turns=30, limit="turns"), id="on the line"),
        pytest.param(changed(3, turns=500, reward=1.0), id="the last unit is large"),
        pytest.param(good(group_id="g"), id="a group id where groups are off"),
    ],
)
def test_what_is_just_allowed_breaks_no_rule(
    sound: Book, damage: "Damage", batch: list[dict[str, Any]]
) -> None:
    damage.emit(batch)

    assert audit(sound) == []


def test_a_partial_batch_may_be_short(sound: Book, damage: "Damage") -> None:
    damage.emit(good(2), states={"is_partial": True})

    assert audit(sound) == []


def test_a_released_batch_leaves_its_samples_free_for_another(sound: Book) -> None:
    sound.release("train-00000003")

    again = sound.assemble()

    assert again.samples == 4
    assert audit(sound) == []


def test_an_offence_names_the_subject_and_the_figures(sound: Book, damage: "Damage") -> None:
    damage.emit(good(3))

    (offence,) = audit(sound)

    assert (offence.subject, offence.detail) == ("bad", "75 of 100 turns, not flagged partial")


def test_every_offender_is_listed(sound: Book, damage: "Damage") -> None:
    sample_in_two_batches(damage)

    assert [offence.subject for offence in audit(sound)] == ["sb0", "sb1", "sb2", "sb3"]


def test_a_failed_unit_never_overtakes_the_passed_ones_of_another_stratum(empty: Book) -> None:
    """The slack for the last one comes from a unit that is too far back for this batch."""
    shares = {"mode": "configured", "configured": {"coding/a": 0.1, "coding/b": 0.9}}
    quota = {"coding": {"failure_share": 0.5}}
    sections = {"batch": {"turns": 100}, "task_type": quota, "shares": shares}
    ages = [("a", 60, 1.0), ("a", 40, 0.0), ("a", 50, 1.0), ("b", 70, 0.0)]
    settings = Settings.model_validate(sections)
    with Book.open(empty.root, settings, clock=worker.FakeClock()) as book:
        book.publish(10)
        book.append(
            [
                worker.sample(
                    nth,
                    duration_class=name,
                    turns=turns,
                    reward=reward,
                    weight_version=10,
                    finished_at=worker.START + timedelta(seconds=nth),
                )
                for nth, (name, turns, reward) in enumerate(ages)
            ]
        )

        made = book.assemble()

        assert made.turns == 100
        assert audit(book) == []
