"""A crowd of tasks in virtual time: what was submitted, when each ran, when it came in.

Durations are Pareto, cut to 3 minutes – 6 hours, turns in proportion. A fixed number of slots
is always busy until the tasks run out, so turns come in at a steady rate, whoever takes them.
"""

import heapq
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

CLASSES = ("short", "medium", "long")
# Where a class ends, in seconds.
_BOUNDS = (15 * 60, 60 * 60)
_LEAST_SECONDS, _MOST_SECONDS = 3 * 60, 6 * 3600
# A heavy tail: the durations of a log-scale decade hold about equal parts of all turns.
_SHAPE = 1.1
_SECONDS_A_TURN = 30
_SLOTS = 64
_SEED = int(os.environ.get("ROLLBOOK_BENCH_FAIRNESS_SEED", "20260101"))


@dataclass(frozen=True, slots=True)
class Crowd:
    """Tasks in the order in which they ended; one entry a task (axis 0).

    Attributes:
        started: seconds from the beginning to the dispatch.
        finished: seconds from the beginning to the end.
        turns: turns.
        classes: index into CLASSES, by duration: the estimate at enqueue is never wrong here.
        last_start: seconds at which the tasks ran out; from there on slots fall idle.
    """

    started: Floats
    finished: Floats
    turns: Ints
    classes: Ints
    last_start: float

    def __len__(self) -> int:
        return len(self.turns)

    @property
    def submitted(self) -> Ints:
        """Return the submitted turns of each class."""
        return turns_by_class(self.classes, self.turns)

    @property
    def turns_a_second(self) -> float:
        """Return the supply."""
        return float(_SLOTS / _SECONDS_A_TURN)

    def longest_runs(self, step_seconds: float) -> list[int]:
        """Return for each class the 90th percentile of its runs in learner steps, rounded up."""
        runs = (self.finished - self.started) / step_seconds
        return [
            int(np.ceil(np.quantile(runs[self.classes == place], 0.9)))
            for place in range(len(CLASSES))
        ]


def turns_by_class(classes: Ints, turns: Ints) -> Ints:
    """Return the sum of turns of each class."""
    return np.bincount(classes, weights=turns, minlength=len(CLASSES)).astype(np.int64)


def crowd(count: int) -> Crowd:
    """Return the crowd of that many tasks; always the same one."""
    seconds = _durations(count)
    started = _starts(seconds)
    finished = started + seconds
    order = np.argsort(finished, kind="stable")
    return Crowd(
        started[order],
        finished[order],
        np.maximum(np.rint(seconds[order] / _SECONDS_A_TURN), 1).astype(np.int64),
        np.searchsorted(_BOUNDS, seconds[order], side="right"),
        float(started.max()),
    )


def _durations(count: int) -> Floats:
    """Draw from the Pareto distribution between the cuts, by its inverse."""
    ends = np.array([_LEAST_SECONDS, _MOST_SECONDS], float) ** -_SHAPE
    drawn = np.random.default_rng(_SEED).random(count)
    seconds: Floats = (ends[0] - drawn * (ends[0] - ends[1])) ** (-1 / _SHAPE)
    return seconds


def _starts(seconds: Floats) -> Floats:
    """Return when each task starts if it is given the slot that is free first."""
    free = [0.0] * _SLOTS
    starts = np.empty(len(seconds))
    for place, duration in enumerate(seconds):
        starts[place] = heapq.heappop(free)
        heapq.heappush(free, starts[place] + duration)
    return starts
