"""The share of a stratum is of what was submitted, so what still runs is allowed for."""

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

HOUR = 3600


def fill(book: Book, sample: "Make", clock: "FakeClock", *, runs: dict[str, int]) -> None:
    """Store what has ended by now of tasks that were dispatched every minute for an hour."""
    rows = [
        sample(
            f"{name}-{minute}",
            turns=10,
            reward=float(minute % 2),
            duration_class=name,
            started_at=clock.now - timedelta(seconds=HOUR - 60 * minute),
            finished_at=clock.now - timedelta(seconds=HOUR - 60 * minute - run),
        )
        for name, run in runs.items()
        for minute in range((HOUR - run) // 60 + 1)
    ]
    book.append(rows)
    book.publish(1)


def classes(book: Book) -> Counter[str]:
    batch_id = book.assemble().batch_id
    assert batch_id
    return Counter(book.batch(batch_id).table(["duration_class"])["duration_class"].to_pylist())


@pytest.mark.parametrize("run", [60, 900, 1800, 2400])
def test_long_tasks_get_the_share_they_were_submitted_with_while_they_still_run(
    run: int, open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 200})
    fill(book, sample, clock, runs={"short": 60, "long": run})

    got = classes(book)

    assert abs(got["long"] - got["short"]) <= 1


def test_of_the_first_arrivals_no_more_than_four_times_as_much_is_inferred(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 100})
    fill(book, sample, clock, runs={"short": 0, "long": HOUR - 5 * 60})

    got = classes(book)

    # 61 short ones arrived and 6 long ones, which count as 24: of ten, three.
    assert got == {"short": 7, "long": 3}


def test_what_arrived_is_carried_from_pass_to_pass_with_how_long_it_ran(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 100}, discard={"max_wait_seconds": None})
    fill(book, sample, clock, runs={"short": 60, "long": 1800})
    classes(book)
    clock.tick(2 * HOUR)

    got = classes(book) + classes(book)

    # Three hours on, the 31 long ones count as 37 of 97: of twenty, seven or eight.
    assert got["long"] in (7, 8)
