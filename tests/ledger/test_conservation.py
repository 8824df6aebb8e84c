"""Every sample is accounted for, at every moment: what came is what was decided or is open."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.ledger import audit
from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    import store_worker as worker

Row = dict[str, Any]
PAIRS: dict[str, tuple[int, Row, Row]] = {
    # Pairs, and what their two members are like.
    "mixed": (300, {"reward": 1.0}, {"reward": 0.0}),
    "flat": (75, {"reward": 1.0}, {"reward": 1.0}),
    "old": (50, {"weight_version": 5}, {"weight_version": 5}),
    "late": (20, {"finished_at": worker.START - timedelta(2)}, {}),
    "broken": (30, {"status": "env_error"}, {"status": "env_error"}),
}


@pytest.fixture
def book(tmp_path: Path, clock: worker.FakeClock) -> Iterator[Book]:
    given = {
        "batch": {"turns": 200},
        "groups": {"size": 2},
        "discard": {"policy": "group", "reason_order": ["wait_seconds", "age_versions"]},
    }
    path = tmp_path / "book"
    with Book.create(path, Settings.model_validate(given), clock=clock) as made:
        yield made


def pairs(name: str) -> list[Row]:
    """Return the samples of one kind, each of one turn."""
    count, *members = PAIRS[name]
    plain = {"weight_version": 10, "turns": 1, "started_at": None}
    return [
        worker.sample(f"{name}{nth}-{place}", group_id=f"{name}{nth}", **plain | member)
        for nth in range(count)
        for place, member in enumerate(members)
    ]


def counted(book: Book) -> Counter[str]:
    """Return samples by what became of them."""
    rows = book.sql("states").to_pylist()
    return Counter({f"{r['state']} {r['reason'] or ''}".strip(): r["samples"] for r in rows})


def test_f14_what_was_submitted_is_trained_discarded_broken_or_open_between_any_two_events(
    book: Book, clock: worker.FakeClock
) -> None:
    book.publish(10)
    arrived = 0
    for name in PAIRS:
        rows = pairs(name)
        arrived += book.append(rows).added
        clock.tick(1)
        assert counted(book).total() == arrived

    while (made := book.assemble()).batch_id:
        assert counted(book).total() == arrived
        book.ack(made.batch_id)
        assert counted(book).total() == arrived

    assert arrived == 950
    assert counted(book) == {
        "trained": 600,
        "discarded flat": 150,
        "discarded age_versions": 100,
        "discarded wait_seconds": 20,
        "discarded sibling": 20,
        "never_trainable env_error": 60,
    }
    assert audit(book) == []
    told = book.sql("discards").to_pylist()
    assert sum(row["samples"] for row in told) == 290
