"""Waiting makes a task more urgent, one level at a time, so that none waits for ever.

A task has a level, 0 the most urgent. It rises by one for every `step_seconds` that it has waited
while it could have run; each level that it crosses is one promotion. At level 0 the order is that
of the first enqueue time, so nobody who comes later can pass it any more. In a pool of c slots, at
most Q tasks in its queue and runs of at most S seconds, a task of level p therefore waits at most

    p · step + ceil(Q / c) · S + S

The last S is what still runs when it gets to level 0. This needs that the queue refuses what is
beyond Q and that a run is ended at S; a score that adds age to other weights gives no such bound.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task in the queue of a pool.

    Attributes:
        task_id: the task.
        level: 0 is the most urgent.
        enqueued_at: when it was first queued; a requeue that is not its fault keeps it.
        eligible_seconds: how long it has waited while it could have run. Time in which a
            quota, a dependency or its tenant's cap held it does not count.
    """

    task_id: str
    level: int
    enqueued_at: datetime
    eligible_seconds: float


@dataclass(frozen=True, slots=True)
class Promotion:
    """One level that a waiting task crossed."""

    task_id: str
    from_level: int
    to_level: int


def effective_level(waiting: Waiting, step_seconds: float) -> int:
    """Return the level at which a task stands by now."""
    return max(0, waiting.level - math.floor(waiting.eligible_seconds / step_seconds))


def promotions(waiting: Waiting, known_level: int, step_seconds: float) -> Iterator[Promotion]:
    """Yield the levels that a task crossed since it was known to stand at one, in order.

    So each is noted once, however often and however late one looks.
    """
    reached = effective_level(waiting, step_seconds)
    for level in range(known_level, reached, -1):
        yield Promotion(waiting.task_id, level, level - 1)


def urgency(waiting: Waiting, step_seconds: float) -> tuple[int, datetime, str]:
    """Return what tasks are sorted by: level by now, first enqueue time, id."""
    return effective_level(waiting, step_seconds), waiting.enqueued_at, waiting.task_id


def longest_wait(
    level: int, *, step_seconds: float, slots: int, queue_cap: int, longest_run_seconds: float
) -> float:
    """Return the seconds that a task of a level waits at most, as the module's formula says.

    Args:
        level: at which it is queued.
        step_seconds: for which it waits at each level.
        slots: how many tasks of the pool run at once; only those that a promoted task may use.
        queue_cap: how many tasks may wait in the pool.
        longest_run_seconds: when a run is ended.
    """
    for name, value, least in (
        ("slots", slots, 1),
        ("level", level, 0),
        ("queue_cap", queue_cap, 0),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}: it must be at least {least}")
    for name, seconds in (
        ("step_seconds", step_seconds),
        ("longest_run_seconds", longest_run_seconds),
    ):
        if not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"{name} is {seconds}: it must be above 0, and finite")
    rounds = math.ceil(queue_cap / slots) + 1
    return level * step_seconds + rounds * longest_run_seconds
