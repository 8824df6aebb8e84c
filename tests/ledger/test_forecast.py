"""`report/forecast`: what will be over the discard line before the next batch, by hand."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    import store_worker as worker

START = worker.START
Row = dict[str, Any]
NEVER = {"max_age_versions": None, "max_wait_seconds": None}
REPLAY = {"origin": "replay", "parent_sample_id": "s0", "environment_snapshot_id": "e"}


@pytest.fixture
def clock() -> worker.FakeClock:
    return worker.FakeClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "book"


def opened(root: Path, clock: worker.FakeClock, **sections: Row) -> Book:
    """Return the book under settings that keep nearly everything."""
    settings = Settings.model_validate({"batch": {"turns": 1_000}, "discard": NEVER} | sections)
    return Book.create(root, settings, clock=clock)


def forecast(book: Book, *columns: str, **params: Any) -> list[tuple[Any, ...]]:
    """Return chosen columns of the forecast."""
    rows = book.sql("forecast", **params).select(list(columns)).to_pylist()
    return [tuple(row.values()) for row in rows]


# -- by versions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "lost"), [(7, 0), (6, 1), (5, 1), (10, 0), (12, 0)])
def test_a_sample_goes_if_one_more_version_makes_it_older_than_its_cap(
    root: Path, clock: worker.FakeClock, version: int, lost: int
) -> None:
    """The current version is 10 and the cap 4: of version 7 it is then 4, of version 6 it is 5."""
    with opened(root, clock, discard=NEVER | {"max_age_versions": 4}) as book:
        book.publish(10)
        book.assemble()
        book.append([worker.sample(1, weight_version=version)])

        told = ("by_version_samples", "by_version_turns", "by_time_samples", "lost_samples")

        assert forecast(book, *told) == [(lost, 25 * lost, 0, lost)]


def test_the_forecast_comes_true_with_the_next_version(root: Path, clock: worker.FakeClock) -> None:
    with opened(root, clock, discard=NEVER | {"max_age_versions": 4}) as book:
        book.publish(10)
        book.append([worker.sample(v, weight_version=v) for v in range(6, 11)])
        book.assemble()
        told = forecast(book, "by_version_samples", "waiting_samples")
        book.publish(11)

        assert told == [(1, 5)]
        assert book.assemble().discarded == 1


def test_without_a_published_version_no_age_in_versions_is_known(
    root: Path, clock: worker.FakeClock
) -> None:
    with opened(root, clock, discard=NEVER | {"max_age_versions": 0}) as book:
        book.append([worker.sample(1)])
        book.assemble()

        assert forecast(book, "by_version_samples", "lost_share") == [(0, 0.0)]


# -- by time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waited", "horizon", "lost"),
    [
        (70, 30, 0),
        (70.000001, 30, 1),
        (100, 0, 0),
        (100.000001, 0, 1),
        (0, 100.5, 1),
        (0, None, 0),
    ],
)
def test_a_sample_goes_if_it_waits_longer_than_it_may_within_the_horizon(
    root: Path, clock: worker.FakeClock, *, waited: float, horizon: float | None, lost: int
) -> None:
    with opened(root, clock, discard=NEVER | {"max_wait_seconds": 100}) as book:
        book.assemble()
        book.append([worker.sample(1)])
        clock.tick(waited)

        told = ("by_time_samples", "by_time_turns", "by_version_samples", "lost_samples")

        asked = forecast(book, *told, horizon_seconds=horizon)
        assert asked == [(lost, 25 * lost, 0, lost)]


def test_the_horizon_is_the_median_interval_between_the_last_ten_batches_of_the_stream(
    root: Path, clock: worker.FakeClock
) -> None:
    """Intervals 1000, 1000, then 10, 20 … 90: the last nine have the median 50."""
    intervals = [1_000, 1_000, *range(10, 100, 10)]
    with opened(root, clock, batch={"turns": 50}) as book:
        for nth, seconds in enumerate([0, *intervals]):
            clock.tick(seconds)
            book.append([worker.sample(f"{nth}-{k}") for k in range(2)])
            assert book.assemble().batch_id
        book.append([worker.sample(f"p{k}", **REPLAY) for k in range(2)])
        assert book.assemble(stream="replay").batch_id
        rest = [worker.sample("r"), worker.sample("q", **REPLAY)]
        book.append(rest)

        assert forecast(book, "stream", "horizon_seconds") == [("train", 50.0), ("replay", 0.0)]
        assert forecast(book, "horizon_seconds", horizon_seconds=7) == [(7.0,), (7.0,)]


@pytest.mark.parametrize(("batches", "seconds"), [(0, 0.0), (1, 0.0), (2, 30.0), (3, 35.0)])
def test_of_fewer_batches_the_horizon_is_what_they_give(
    root: Path, clock: worker.FakeClock, batches: int, seconds: float
) -> None:
    with opened(root, clock, batch={"turns": 50}) as book:
        for nth in range(batches):
            book.append([worker.sample(f"{nth}-{k}") for k in range(2)])
            book.assemble()
            clock.tick(30 + 10 * nth)
        book.append([worker.sample("rest")])

        assert forecast(book, "horizon_seconds") == [(seconds,)]


# -- of whom -------------------------------------------------------------------------------------


def test_it_is_told_by_type_and_class_with_each_class_s_own_line(
    root: Path, clock: worker.FakeClock
) -> None:
    """The line is 4 versions and 100 s; of long ones 6 versions, of quick ones 50 s.

    Version 10 is current, and 60 s passed; with a horizon of 30 s they are at 90 s of waiting.
    """
    classes = {"long": {"max_age_versions": 6}, "quick": {"max_wait_seconds": 50}}
    line = {"max_age_versions": 4, "max_wait_seconds": 100}
    with opened(root, clock, discard=line, duration_class=classes) as book:
        book.publish(10)
        book.assemble()
        rows = [
            ("coding", None, 6, 25),  # 5 > 4
            ("coding", None, 7, 75),
            ("coding", "long", 5, 40),  # 6: kept
            ("coding", "long", 4, 60),  # 7 > 6
            ("coding", "quick", 6, 10),  # 5 > 4 and 90 > 50: once
            ("coding", "quick", 10, 30),  # 90 > 50
            ("search", "unknown", 10, 5),
        ]
        book.append(
            [
                worker.sample(
                    nth, task_type=kind, duration_class=name, weight_version=version, turns=turns
                )
                for nth, (kind, name, version, turns) in enumerate(rows)
            ]
        )
        clock.tick(60)

        told = (
            "task_type",
            "duration_class",
            "waiting_turns",
            "by_version_turns",
            "by_time_turns",
            "lost_samples",
            "lost_turns",
            "lost_share",
        )
        assert forecast(book, *told, horizon_seconds=30) == [
            ("coding", "long", 100, 60, 0, 1, 60, 0.6),
            ("coding", "quick", 40, 10, 40, 2, 40, 1.0),
            ("coding", None, 100, 25, 0, 1, 25, 0.25),
            ("search", "unknown", 5, 0, 0, 0, 0, 0.0),
        ]


def test_limits_that_do_not_apply_take_nothing(root: Path, clock: worker.FakeClock) -> None:
    with opened(root, clock, duration_class={"long": NEVER}) as book:
        book.publish(1_000)
        book.append([worker.sample(1), worker.sample(2, duration_class="long")])
        book.assemble()
        clock.tick(10_000_000)

        assert forecast(book, "lost_samples", "lost_share") == [(0, 0.0), (0, 0.0)]


def test_what_awaits_its_reward_ages_too_and_what_is_decided_or_held_does_not(
    root: Path, clock: worker.FakeClock
) -> None:
    with opened(root, clock, batch={"turns": 50}, discard=NEVER | {"max_age_versions": 4}) as book:
        book.publish(10)
        old = {"weight_version": 6}
        book.append([worker.sample(f"in{k}", **old) for k in range(2)])
        assert book.assemble().samples == 2
        book.append(
            [
                worker.sample("ungraded", reward=None, **old),
                worker.sample("broken", status="env_error", **old),
                worker.sample("lacking", seed=None, gaps=["seed"], **old),
            ]
        )

        told = ("waiting_samples", "waiting_turns", "lost_samples", "lost_turns")
        assert forecast(book, *told) == [(1, 25, 1, 25)]


def test_the_lines_are_those_of_the_newest_pass(root: Path, clock: worker.FakeClock) -> None:
    strict = {"max_age_versions": 0, "max_wait_seconds": None}
    with opened(root, clock) as book:
        book.publish(10)
        book.assemble()
        book.append([worker.sample(1, weight_version=10)])
        before = forecast(book, "lost_samples")
    with opened(root, clock, discard=strict) as book:
        book.append([worker.sample(2, weight_version=9, finished_at=START - timedelta(seconds=1))])
        assert book.assemble().discarded == 1

        assert (before, forecast(book, "lost_samples")) == ([(0,)], [(1,)])


def test_before_the_first_pass_the_lines_are_unknown_and_so_is_what_goes(
    root: Path, clock: worker.FakeClock
) -> None:
    with opened(root, clock) as book:
        book.append([worker.sample(1)])

        told = ("waiting_samples", "waiting_turns", "by_version_samples", "by_time_turns")
        assert forecast(book, *told) == [(1, 25, None, None)]
        assert forecast(book, "lost_samples", "lost_turns", "lost_share") == [(None, None, None)]
