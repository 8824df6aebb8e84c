"""A task is expected to run as long as nine of ten of its like did."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rollbook.scheduler import class_of, estimate
from rollbook.scheduler.estimates import Run, of_runs, widened
from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    sys.path.append(str(Path(__file__).parents[1] / "store" / "workers"))
    import store_worker as worker

CLASSES = Settings.model_validate(
    {
        "batch": {"turns": 100},
        "duration_class": {
            "short": {"most_seconds": 60.0},
            "medium": {"most_seconds": 600.0},
            "long": {},
        },
    }
)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with Book.create(tmp_path / "book", CLASSES, clock=worker.FakeClock()) as made:
        yield made


def ran(book: Book, key: str, seconds: list[float], **changes: Any) -> None:
    """Let runs of so many seconds end, the last of them last."""
    ends = [worker.START - timedelta(seconds=len(seconds) - nth) for nth in range(len(seconds))]
    book.append(
        [
            worker.sample(
                f"{key}{nth}",
                **{"finished_at": end, "started_at": end - timedelta(seconds=took)} | changes,
            )
            for nth, (took, end) in enumerate(zip(seconds, ends, strict=True))
        ]
    )


@pytest.mark.parametrize(
    ("runs", "expected"),
    [(9, 9.0), (10, 10.0), (19, 18.0), (20, 19.0), (49, 45.0), (50, 46.0)],
)
def test_the_estimate_is_the_run_of_the_rank_that_the_next_one_passes_once_in_ten(
    runs: int, expected: float
) -> None:
    found = of_runs([Run(float(nth)) for nth in range(runs, 0, -1)], "type")

    assert (found.seconds, found.runs, found.quantile) == (expected, runs, 0.9)


@given(st.integers(0, 2**32))
def test_of_like_runs_about_nine_in_ten_end_within_the_estimate(seed: int) -> None:
    chance = Random(seed)
    drawn = [chance.lognormvariate(5, 1) for _ in range(550)]

    ended = [
        drawn[nth] <= (of_runs([Run(s) for s in drawn[nth - 50 : nth]], "type").seconds or 0)
        for nth in range(50, 550)
    ]

    assert 0.8 < sum(ended) / len(ended) < 0.99


@pytest.mark.parametrize(
    ("passed", "of", "quantile"),
    [(1, 10, 0.9), (2, 10, 1.0), (8, 50, 0.96), (50, 50, 0.99), (9, 9, 0.9)],
)
def test_when_more_runs_pass_their_estimates_than_should_the_quantile_rises(
    passed: int, of: int, quantile: float
) -> None:
    runs = [Run(2.0, 1.0)] * passed + [Run(1.0, 1.0)] * (of - passed) + [Run(1.0)] * 20

    assert widened(runs) == pytest.approx(min(quantile, 0.99))


def test_the_runs_of_the_weight_version_come_first_then_those_of_the_type_then_the_hint(
    book: Book,
) -> None:
    ran(book, "old", [10.0] * 9, weight_version=1)
    ran(book, "new", [20.0] * 8, weight_version=2)
    early = estimate(book, "coding", 2, hint=7.0)
    ran(book, "newer", [20.0], weight_version=2)

    late = estimate(book, "coding", 2, hint=7.0)
    unknown = [estimate(book, "other", 2, hint=8.0), estimate(book, "other")]

    assert (early.seconds, early.source, early.runs) == (20.0, "type", 17)
    assert (late.seconds, late.source, late.runs) == (20.0, "version", 9)
    assert [(each.seconds, each.source) for each in unknown] == [(12.0, "hint"), (None, "none")]


def test_only_the_last_50_runs_count_and_none_whose_environment_broke(book: Book) -> None:
    yesterday = worker.START - timedelta(1)
    before = {"finished_at": yesterday, "started_at": yesterday - timedelta(seconds=500)}
    ran(book, "before", [500.0] * 20, **before)
    first = estimate(book, "coding").seconds
    ran(book, "broken", [5000.0] * 20, status="env_error", reward=None)
    ran(book, "b", [30.0] * 50)

    found = estimate(book, "coding")

    assert (first, found.seconds, found.runs) == (500.0, 30.0, 50)


@pytest.mark.parametrize(
    ("expected", "name"),
    [(0, "short"), (60, "short"), (60.1, "medium"), (601, "long"), (None, "long")],
)
def test_a_task_belongs_to_the_least_class_that_it_fits_and_an_unknown_one_to_the_longest(
    expected: float | None, name: str
) -> None:
    assert class_of(expected, CLASSES) == name


def test_what_fits_no_bound_belongs_to_the_longest_and_without_bounds_there_are_no_classes() -> (
    None
):
    bounded = Settings.model_validate(
        {"duration_class": {"a": {"most_seconds": 5.0}, "b": {"most_seconds": 9.0}}}
    )
    unbounded = Settings.model_validate({"duration_class": {"a": {}, "b": {}}})

    assert (class_of(10, bounded), class_of(None, bounded)) == ("b", "b")
    assert class_of(10, unbounded) is None


def test_two_classes_of_one_bound_are_refused_and_both_are_named() -> None:
    same = {"a": {"most_seconds": 5.0}, "b": {"most_seconds": 5.0}}

    with pytest.raises(ValidationError, match=r"duration_class.a and duration_class.b .* 5.0"):
        Settings.model_validate({"duration_class": same})


def test_a_hint_that_is_no_time_is_refused(book: Book) -> None:
    with pytest.raises(ValueError, match="hint is -1: it must be 0 or more seconds"):
        estimate(book, "coding", hint=-1)


def test_coverage_is_told_by_type_and_version_and_only_of_what_was_estimated(book: Book) -> None:
    ran(book, "a", [10.0, 20.0, 30.0, 40.0], expected_seconds=30.0, weight_version=1)
    ran(book, "b", [10.0, 10.0], weight_version=1)
    ran(book, "c", [10.0], weight_version=2)

    told = book.sql("coverage").to_pylist()

    names = ("weight_version", "runs", "estimated", "covered_share")
    assert [tuple(row[name] for name in names) for row in told] == [
        (1, 6, 4, 0.75),
        (2, 1, 0, None),
    ]
    assert told[0]["median_ratio"] == pytest.approx(25 / 30)


def test_a_task_in_the_wrong_class_is_counted_on_the_side_to_which_it_belongs(book: Book) -> None:
    ran(book, "s", [60.0, 61.0, 700.0], duration_class="short")
    ran(book, "l", [700.0, 5.0], duration_class="long")
    ran(book, "n", [5.0])
    book.assemble()

    told = book.sql("misclassified").to_pylist()

    names = ("duration_class", "runs", "longer", "shorter")
    assert [tuple(row[name] for name in names) for row in told] == [
        ("long", 2, 0, 1),
        ("short", 3, 2, 0),
    ]
    assert told[1]["misclassified_share"] == pytest.approx(2 / 3)
