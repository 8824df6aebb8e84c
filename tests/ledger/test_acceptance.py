"""Each criterion is passed by a sound book, failed by every damage to it, and never empty."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.ledger import Figure, acceptance, rules
from rollbook.ledger.acceptance import CRITERIA, judged
from rollbook.store import Book, Settings
from rollbook.store.schema import TableName

if TYPE_CHECKING:
    from tests.ledger.conftest import Damage
    from tests.store.workers import store_worker as worker

    Way = Callable[["Damage"], None]
else:
    import store_worker as worker

    Way = Callable

NAMES = list(CRITERIA)


def statuses(book: Book) -> dict[str, str]:
    """Return criterion → status."""
    return {criterion.name: criterion.status for criterion in acceptance(book)}


def figures(book: Book, name: str) -> dict[str, float | None]:
    """Return the figures of a criterion by name."""
    found = next(criterion for criterion in acceptance(book) if criterion.name == name)
    return {figure.name: figure.value for figure in found.figures}


def batch(place: int = 0, count: int = 4, **changes: Any) -> list[dict[str, Any]]:
    """Return samples that make a sound batch but for the changes at one place."""
    rows = [
        worker.sample(f"x{nth}", reward=float(nth % 2 == 0), weight_version=10)
        for nth in range(count)
    ]
    rows[place] |= changes
    return rows


def interruption(damage: "Damage", seconds: float = 0) -> None:
    """Note a pass that made no batch because nothing carried a gradient."""
    at = worker.START + timedelta(seconds=seconds)
    header = damage.header(60, blocker="no_gradient", reasons=["too_hard"], decided_at=at)
    damage.append("dispositions", header)


def incident(damage: "Damage", event: str, seconds: float, subject: str = "train") -> None:
    """Note that an alarm about flat batches opened or closed."""
    row = {
        "event_id": f"{subject}-{event}",
        "incident_id": f"no_gradient/{subject}/1",
        "kind": "no_gradient",
        "subject": subject,
        "event": event,
        "at": worker.START + timedelta(seconds=seconds),
        "figures": "{}",
    }
    damage.append("incidents", row)


def gap_without_a_name(damage: "Damage") -> None:
    row = damage.stored("sunknown") | {"sample_id": "snameless", "position": 77, "gaps": []}
    damage.append("samples", row)


def twice(table: TableName, **changes: Any) -> Way:
    return lambda damage: damage.append(table, damage.stored("spending") | changes)


# What was done to the book → the criterion that it fails, alone.
WAYS: dict[str, tuple[Way, str]] = {
    "trained on without an image": (
        lambda damage: damage.emit(batch(image_digest=None, gaps=["image_digest"])),
        "traceable",
    ),
    "trained on without a weight version": (
        lambda damage: damage.emit(batch(weight_version=None, gaps=["weight_version"])),
        "traceable",
    ),
    "trained on without an attempt": (
        lambda damage: damage.emit(batch(attempt=None, gaps=["attempt"])),
        "traceable",
    ),
    "a missing fact that is not named": (gap_without_a_name, "traceable"),
    "two samples of one id": (twice("samples", position=77), "traceable"),
    "two samples at one position": (twice("samples", sample_id="sother"), "traceable"),
    "below T and not flagged": (lambda damage: damage.emit(batch(count=3)), "complete_by_turns"),
    "past T": (lambda damage: damage.emit(batch(count=5)), "complete_by_turns"),
    "truncated over the line": (
        lambda damage: damage.emit(batch(status="truncated", limit="turns", turns=31)),
        "complete_by_turns",
    ),
    "a truncated share that is not queryable": (
        lambda damage: damage.emit(batch(), states={"truncated_turns": None}),
        "complete_by_turns",
    ),
    "over the cap": (lambda damage: damage.emit(batch(weight_version=5)), "bounded_age"),
    "a discard without a limit": (lambda damage: damage.discard(limit=None), "bounded_age"),
    "a discard that is not counted": (
        lambda damage: damage.discard(states={"discarded": 0}),
        "bounded_age",
    ),
    "a discard below the limit": (
        lambda damage: damage.discard(age_versions=4),
        "bounded_age",
    ),
    "over the failure share": (
        lambda damage: damage.emit(batch(2, reward=0.0)),
        "bounded_failure",
    ),
    "a broken environment taken for a failure": (
        lambda damage: damage.emit(batch(1, status="env_error")),
        "bounded_failure",
    ),
    "an interruption without an alarm": (interruption, "bounded_failure"),
}


def test_a_sound_book_passes_all_four_in_the_order_of_the_design(sound: Book) -> None:
    assert statuses(sound) == dict.fromkeys(NAMES, "pass")


@pytest.mark.parametrize(("way", "failed"), WAYS.values(), ids=WAYS)
def test_each_damage_fails_its_criterion_and_no_other(
    sound: Book, damage: "Damage", way: Way, failed: str
) -> None:
    way(damage)

    assert statuses(sound) == dict.fromkeys(NAMES, "pass") | {failed: "fail"}


def test_without_a_trained_batch_there_is_nothing_to_judge_by(empty: Book) -> None:
    assert statuses(empty) == dict.fromkeys(NAMES, "no_data")


def test_a_batch_that_is_not_acked_is_not_trained(empty: Book) -> None:
    empty.publish(10)
    empty.append(batch())

    assert empty.assemble().batch_id
    assert statuses(empty) == dict.fromkeys(NAMES, "no_data")


def test_a_damage_fails_even_where_there_is_nothing_to_judge_by(sound: Book) -> None:
    over = (Figure("trained", 0, least=1), Figure("offences", 1, most=0))

    assert judged(over) == "fail"
    assert judged(over[:1]) == "no_data"
    assert judged((Figure("greatest of nothing", None, most=1),)) == "fail"


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([("opened", 5)], "pass"),
        ([("opened", -5)], "pass"),
        ([("opened", -9), ("closed", 5)], "pass"),
        ([("opened", -9), ("closed", -5)], "fail"),
    ],
)
def test_an_interruption_needs_an_incident_that_was_open_then(
    sound: Book, damage: "Damage", events: list[tuple[str, float]], status: str
) -> None:
    interruption(damage)

    for event, seconds in events:
        incident(damage, event, seconds)

    assert statuses(sound)["bounded_failure"] == status


def test_an_incident_of_another_stream_is_no_alarm(sound: Book, damage: "Damage") -> None:
    interruption(damage)

    incident(damage, "opened", 0, subject="replay")

    assert statuses(sound)["bounded_failure"] == "fail"


def test_a_book_that_sets_no_cap_fails_the_third(empty: Book) -> None:
    free = {"max_age_versions": None, "max_wait_seconds": None}
    settings = Settings.model_validate({"batch": {"turns": 100}, "discard": free})
    with Book.open(empty.root, settings, clock=worker.FakeClock()) as book:
        book.publish(10)
        book.append(batch())
        book.ack(str(book.assemble().batch_id))

        found = figures(book, "bounded_age")

        assert statuses(book)["bounded_age"] == "fail"
        assert found["assigned_without_a_cap"] == 4


def test_the_figures_behind_each_are_numbers_of_the_book(sound: Book) -> None:
    told = {name: figures(sound, name) for name in NAMES}

    assert (
        told["traceable"] | {"trained_samples": 4, "samples": 13, "traced_samples": 12}
        == (told["traceable"])
    )
    assert told["complete_by_turns"]["trained_batches"] == 1
    assert told["complete_by_turns"]["batches"] == 2
    assert told["complete_by_turns"]["most_truncated_share"] == 0.25
    assert told["bounded_age"]["oldest_age_versions"] == 4
    assert told["bounded_age"]["discards_by_age"] == 1
    assert told["bounded_failure"]["most_failed_share"] == 0.5
    assert told["bounded_failure"]["task_types_with_a_share_below_1"] == 1


def test_criteria_stand_on_rules_that_there_are() -> None:
    used = {rule for _, names in CRITERIA.values() for rule in names}

    assert used <= set(rules())
