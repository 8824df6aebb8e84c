"""Truncated turns are at most a share of T in a batch; a unit that is too large enters none."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollbook.ledger import audit
from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import Make, OpenBook


def truncated_turns(book: Book, batch_id: str | None) -> int:
    """Return the truncated turns of a batch."""
    rows = book.batch(str(batch_id)).table(["status", "turns"]).to_pylist()
    return sum(row["turns"] for row in rows if row["status"] == "truncated")


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 0), (0.1, 10), (0.19, 15), (0.29, 25), (0.3, 30), (1.0, 50)]
)
def test_truncated_turns_fill_the_line_and_never_pass_it(
    open_book: "OpenBook", sample: "Make", share: float, expected: int
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": share})
    book.append([sample(f"cut{key}", turns=5, status="truncated") for key in range(10)])
    book.append([sample(f"whole{key}", turns=5) for key in range(20)])

    made = book.assemble()

    (header,) = book.query("SELECT * FROM dispositions WHERE kind = 'pass'").to_pylist()
    assert made.turns == 100
    assert truncated_turns(book, made.batch_id) == header["truncated_turns"] == expected


def test_truncated_turns_at_the_line_are_in_it_whatever_the_rounding(
    open_book: "OpenBook", sample: "Make"
) -> None:
    """0.29 * 100 is 28.999999999999996."""
    book = open_book(batch={"turns": 100, "truncated_share": 0.29})
    book.append([sample("cut", turns=29, status="truncated"), sample("whole", turns=71)])

    assert book.assemble().turns == 100


@pytest.mark.parametrize("share", [0.999, 1.0])
def test_a_line_of_one_is_none_and_lets_a_batch_of_truncated_turns_pass_its_target(
    open_book: "OpenBook", sample: "Make", share: float
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": share})
    book.append([sample(key, turns=60, status="truncated") for key in range(2)])

    made = book.assemble()

    assert made.turns == (120 if share == 1 else 0)
    assert audit(book) == []


def test_what_the_line_holds_is_counted_and_stays_for_the_next_batch(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": 0.25})
    book.append([sample(f"cut{key}", status="truncated") for key in range(3)])
    short = book.assemble()
    book.append([sample(f"whole{key}") for key in range(6)])

    made = [book.assemble() for _ in range(2)]

    (held,) = [row for row in short.funnel if row["step"] == "held"]
    assert (held["reason"], held["samples"], held["turns"]) == ("truncation_line", 2, 50)
    assert (short.blocker, short.pending_turns, short.missing_turns) == ("short", 25, 75)
    assert [truncated_turns(book, each.batch_id) for each in made] == [25, 25]


def test_a_unit_of_more_truncated_turns_than_the_line_waits_and_keeps_nobody_waiting(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": 0.1})
    book.append([sample("a long one", turns=11, status="truncated")])
    book.append([sample(f"cut{key}", turns=5, status="truncated") for key in range(2)])
    book.append([sample(f"whole{key}", turns=30) for key in range(3)])

    made = book.assemble()

    assert (made.turns, truncated_turns(book, made.batch_id)) == (100, 10)


def test_many_units_over_the_line_do_not_hide_those_behind_them_that_fit(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": 0.1})
    book.append([sample(f"large{key}", turns=20, status="truncated") for key in range(10)])
    book.append([sample(f"whole{key}", turns=30) for key in range(3)])
    later = sample("x")["finished_at"] + timedelta(seconds=60)
    book.append([sample("small", turns=10, status="truncated", finished_at=later)])

    made = book.assemble()

    assert (made.turns, truncated_turns(book, made.batch_id)) == (100, 10)
    assert {row["samples"] for row in made.funnel if row["step"] == "held"} == {10}


def test_a_group_counts_by_the_turns_of_its_truncated_members(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 100, "truncated_share": 0.25}, groups={"size": 2})
    for name, first in (("g", "truncated"), ("h", "truncated"), ("i", "completed")):
        book.append([sample(name, group_id=name, status=first), sample(f"{name}'", group_id=name)])

    made = book.assemble()

    assert (made.turns, truncated_turns(book, made.batch_id)) == (100, 25)


@pytest.mark.parametrize(("turns", "is_kept"), [(50, True), (51, False)])
def test_a_sample_of_more_turns_than_a_unit_may_have_is_discarded_as_oversize(
    open_book: "OpenBook", sample: "Make", turns: int, *, is_kept: bool
) -> None:
    book = open_book(batch={"turns": 100, "max_unit_turns": 50})
    book.append([sample("large", turns=turns), sample("small", turns=50)])

    made = book.assemble()

    discards = book.query(
        "SELECT reason, \"limit\" FROM dispositions WHERE kind = 'discarded'"
    ).to_pylist()
    assert made.samples == (2 if is_kept else 0)
    assert discards == ([] if is_kept else [{"reason": "oversize", "limit": 50.0}])
    assert book.query("SELECT SUM(samples) AS n FROM ledger").to_pylist() == [{"n": 2}]
