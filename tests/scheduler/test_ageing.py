"""No task waits for longer than its level, the queue and the longest run allow."""

import heapq
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.scheduler.ageing import (
    Waiting,
    effective_level,
    longest_wait,
    promotions,
    urgency,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
TASK = Waiting("t", 3, START, 0.0)


@pytest.mark.parametrize(
    ("waited", "level"), [(0, 3), (299.9, 3), (300, 2), (899, 1), (900, 0), (9000, 0)]
)
def test_a_level_is_crossed_with_every_step_of_waiting_and_never_below_zero(
    waited: float, level: int
) -> None:
    assert effective_level(replace(TASK, eligible_seconds=waited), 300) == level


@given(st.lists(st.floats(0, 2000), min_size=1, max_size=9))
def test_each_level_is_noted_once_however_often_one_looks(looks: list[float]) -> None:
    known, noted = 3, []
    for waited in sorted(looks):
        for each in promotions(replace(TASK, eligible_seconds=waited), known, 300):
            noted.append((each.from_level, each.to_level))
            known = each.to_level

    assert noted == [(level, level - 1) for level in range(3, known, -1)]
    assert known == effective_level(replace(TASK, eligible_seconds=max(looks)), 300)


def test_at_one_level_the_first_that_was_queued_comes_first_and_ids_break_ties() -> None:
    later = START + timedelta(seconds=1)
    tasks = [
        Waiting("late", 0, later, 0),
        Waiting("b", 1, START, 300),
        Waiting("a", 0, START, 0),
        Waiting("low", 1, START, 299),
    ]

    ordered = sorted(tasks, key=lambda task: urgency(task, 300))

    assert [task.task_id for task in ordered] == ["a", "b", "late", "low"]


class Pool:
    """An overloaded pool in virtual time: tasks of random levels, runs of 20 to 60 seconds."""

    def __init__(self, seed: int, step_seconds: float) -> None:
        self.chance = Random(seed)
        self.slots, self.cap = self.chance.randint(1, 4), self.chance.randint(5, 40)
        self.step = step_seconds
        self.queue: dict[str, tuple[int, float]] = {}
        self.ends: list[float] = []
        self.waits: list[tuple[int, float]] = []

    def run(self, tasks: int) -> None:
        """Let tasks arrive 1.4 times as fast as the slots can take them."""
        now = 0.0
        for number in range(tasks):
            now += self.chance.expovariate(1.4 * self.slots / 40)
            while self.ends and self.ends[0] <= now:
                self.start(heapq.heappop(self.ends))
            if len(self.queue) < self.cap:
                self.queue[f"{number:04}"] = (self.chance.randint(0, 3), now)
            if len(self.ends) < self.slots:
                self.start(now)
        self.waits += [(level, now - since) for level, since in self.queue.values()]

    def start(self, now: float) -> None:
        """Give a free slot to the most urgent task."""
        if not self.queue:
            return
        waiting = (
            Waiting(task_id, level, START + timedelta(seconds=since), now - since)
            for task_id, (level, since) in self.queue.items()
        )
        first = min(waiting, key=lambda task: urgency(task, self.step))
        level, since = self.queue.pop(first.task_id)
        self.waits.append((level, now - since))
        heapq.heappush(self.ends, now + self.chance.uniform(20, 60))


def longest_share_of_the_bound(seed: int, step_seconds: float = 300.0) -> float:
    """Return the longest wait of any task as a share of the bound for a step of 300 s."""
    pool = Pool(seed, step_seconds)
    pool.run(400)
    limits = {"slots": pool.slots, "queue_cap": pool.cap}
    return max(
        wait / longest_wait(level, step_seconds=300, longest_run_seconds=60, **limits)
        for level, wait in pool.waits
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_no_task_of_an_overloaded_pool_waits_beyond_the_bound(seed: int) -> None:
    assert longest_share_of_the_bound(seed) <= 1


def test_without_ageing_the_least_urgent_tasks_of_an_overloaded_pool_starve() -> None:
    assert max(longest_share_of_the_bound(seed, step_seconds=1e12) for seed in range(9)) > 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"slots": 0}, "slots is 0: it must be at least 1"),
        ({"queue_cap": -1}, "queue_cap is -1"),
        ({"step_seconds": 0.0}, "step_seconds is 0.0: it must be above 0"),
        ({"longest_run_seconds": float("inf")}, "longest_run_seconds is inf"),
    ],
)
def test_a_pool_that_has_no_bound_is_refused(changes: dict[str, float], says: str) -> None:
    pool = {"step_seconds": 300.0, "slots": 4, "queue_cap": 400, "longest_run_seconds": 60.0}

    with pytest.raises(ValueError, match=says):
        longest_wait(3, **pool | changes)  # type: ignore[arg-type]


def test_the_bound_of_the_example_is_that_of_the_formula() -> None:
    pool = {"step_seconds": 300.0, "slots": 4, "queue_cap": 400, "longest_run_seconds": 60.0}

    assert longest_wait(3, **pool) == 900 + 6000 + 60  # type: ignore[arg-type]
