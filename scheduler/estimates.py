"""How long a task will run, from how long its like ran; and so which class it belongs to.

The estimate is an upper quantile, for it is the underestimated task that blocks a short pool.
Of n recent runs the ceil((n + 1) · 0.9)-th smallest is not exceeded by the next run with a
probability of 0.9, whatever the distribution, as long as runs are alike (split conformal
prediction; Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005). When they
drift, more runs pass their estimate than should: then the quantile is raised by the excess.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..store import Book, Settings

# The share of runs that should end within their estimate.
AIM = 0.9
# Fewer runs than this have no (n + 1) · 0.9-th smallest.
FEWEST_RUNS = 9
# If more estimates than this share were passed, runs have drifted; of fewer none can say.
_MOST_PASSED = 0.15
_FEWEST_ESTIMATES = 10
_WIDEST = 0.99
# What callers say of their own tasks is too short more often than too long.
HINT_MARGIN = 1.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a task is expected to run.

    Attributes:
        seconds: the estimate; None where nothing is known.
        source: `version` (runs of its type under its weight version), `type` (of its type under
            any), `hint` (of the caller), or `none`.
        runs: how many runs it is made from.
        quantile: which quantile of them was aimed at.
    """

    seconds: float | None
    source: Literal["version", "type", "hint", "none"]
    runs: int = 0
    quantile: float = AIM


@dataclass(frozen=True, slots=True)
class Run:
    """How long one run took, and what was estimated when it was queued."""

    seconds: float
    expected_seconds: float | None = None


def estimate(
    book: Book, task_type: str, weight_version: int | None = None, *, hint: float | None = None
) -> Estimate:
    """Return how long a task is expected to run.

    Args:
        book: where the runs are.
        task_type: of the task.
        weight_version: that will make it.
        hint: seconds that the caller expects; taken times 1.5, and only where runs are too few.
    """
    if hint is not None and not (math.isfinite(hint) and hint >= 0):
        raise ValueError(f"hint is {hint}: it must be 0 or more seconds, and finite")
    if weight_version is not None:
        runs = _recent(book, task_type=task_type, weight_version=weight_version)
        if len(runs) >= FEWEST_RUNS:
            return of_runs(runs, "version")
    runs = _recent(book, task_type=task_type)
    if len(runs) >= FEWEST_RUNS:
        return of_runs(runs, "type")
    if hint is not None:
        return Estimate(hint * HINT_MARGIN, "hint")
    return Estimate(None, "none")


def _recent(book: Book, **of: Any) -> list[Run]:
    rows = book.sql("recent_runs", **of).select(["seconds", "expected_seconds"]).to_pylist()
    return [Run(**row) for row in rows]


def of_runs(runs: Sequence[Run], source: Literal["version", "type"]) -> Estimate:
    """Return the estimate that some runs give; there must be at least `FEWEST_RUNS`."""
    if len(runs) < FEWEST_RUNS:
        raise ValueError(f"{len(runs)} runs are too few: {FEWEST_RUNS} are needed")
    quantile = widened(runs)
    # A hair less, so that rounding does not raise the rank: 10 · 0.9 is 9.
    rank = math.ceil((len(runs) + 1) * quantile - 1e-9)
    seconds = sorted(run.seconds for run in runs)
    return Estimate(seconds[min(rank, len(runs)) - 1], source, len(runs), quantile)


def widened(runs: Sequence[Run]) -> float:
    """Return the quantile to aim at: more than 0.9 where too many runs passed their estimate."""
    judged = [run for run in runs if run.expected_seconds is not None]
    if len(judged) < _FEWEST_ESTIMATES:
        return AIM
    passed = sum(run.seconds > (run.expected_seconds or 0) for run in judged) / len(judged)
    return min(AIM + passed - (1 - AIM), _WIDEST) if passed > _MOST_PASSED else AIM


def class_of(expected_seconds: float | None, settings: Settings) -> str | None:
    """Return the duration class of a task; None where no classes have bounds.

    That is the one of the least bound that the estimate does not pass. What is longer than all
    bounds, or unknown, belongs to the longest class.
    """
    bounds = sorted(
        (math.inf if line.most_seconds is None else line.most_seconds, name)
        for name, line in settings.duration_class.items()
    )
    if not any(math.isfinite(bound) for bound, _ in bounds):
        return None
    wanted = math.inf if expected_seconds is None else expected_seconds
    return next((name for bound, name in bounds if bound >= wanted), bounds[-1][1])
