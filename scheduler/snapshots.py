"""After which steps of a rollout a snapshot is worth its cost.

All costs are in one unit: environment seconds, or money. What a failure loses is what must be
done again since the last snapshot: the environment's time, the model's tokens, and the calls
that no recording can answer. Failures come at random at a rate r per unit of cost, so that to
get through a segment of work W with a snapshot of cost s at its end takes on average

    (exp(r · (W + s)) - 1) · (1 / r + R)

where R is the cost of a restore (Daly, Future Generation Computer Systems 22, 2006). Steps differ,
so the best places are found by dynamic programming over segments (Toueg and Babaoglu, SIAM
Journal on Computing 13, 1984). While a rollout runs its steps are not known yet; then the rule is
that of Young (Communications of the ACM 17, 1974): an interval of sqrt(2 · C · M), where C is the
cost of a snapshot and M the mean cost between failures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rollout.

    Attributes:
        redo_cost: what it costs to do it again.
        snapshot_cost: what a snapshot right after it costs.
        is_risky: whether it cannot be undone or is long, so that a snapshot must stand before it.
    """

    redo_cost: float
    snapshot_cost: float
    is_risky: bool = False

    def __post_init__(self) -> None:
        """Refuse costs that are none."""
        for name in ("redo_cost", "snapshot_cost"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}: it must be 0 or more, and finite")


@dataclass(frozen=True, slots=True)
class Advice:
    """Where snapshots should stand, and the figures that say why.

    Attributes:
        after: the steps (0 = first) after which a snapshot should be made, in order.
        expected_cost: mean cost of the whole rollout with these, failures and redoing included.
        expected_cost_without: the same without any snapshot; infinite if it is past all numbers.
        expected_cost_of_all: the same with a snapshot after every step.
        failure_rate: failures per unit of cost.
        interval: Young's interval for the mean snapshot cost, for comparison.
    """

    after: tuple[int, ...]
    expected_cost: float
    expected_cost_without: float
    expected_cost_of_all: float
    failure_rate: float
    interval: float


def failure_rate(failures: int, exposure: float, *, prior_exposure: float) -> float:
    """Return failures per unit of cost, never 0: the mean of a gamma posterior.

    Args:
        failures: how many were seen.
        exposure: over how much cost they were seen.
        prior_exposure: cost over which one failure is expected before any was seen.
    """
    if failures < 0 or not (math.isfinite(exposure) and exposure >= 0):
        raise ValueError(f"{failures} failures over {exposure}: neither can be negative")
    if not (math.isfinite(prior_exposure) and prior_exposure > 0):
        raise ValueError(f"prior_exposure is {prior_exposure}: it must be above 0, and finite")
    return (failures + 1) / (exposure + prior_exposure)


def young_interval(snapshot_cost: float, mean_between_failures: float) -> float:
    """Return the interval between snapshots that is best where all steps are alike."""
    return math.sqrt(2 * snapshot_cost * mean_between_failures)


def snapshot_is_due(redo_cost: float, snapshot_cost: float, rate: float) -> bool:
    """Return whether so much has been done since the last snapshot that one should be made now.

    Args:
        redo_cost: what a failure would cost now, all steps since the last snapshot.
        snapshot_cost: what a snapshot would cost now.
        rate: failures per unit of cost.
    """
    return redo_cost > 0 and redo_cost >= young_interval(snapshot_cost, 1 / rate)


def advise_snapshots(steps: Sequence[Step], rate: float, *, restore_cost: float = 0.0) -> Advice:
    """Return after which steps snapshots should stand so that the mean cost is least.

    Time grows with the square of the number of steps: 1,000 of them take about half a second.

    Args:
        steps: what was done, or is expected to be, in order.
        rate: failures per unit of cost, above 0.
        restore_cost: what it costs to begin again at a snapshot, or at the beginning.
    """
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"the failure rate is {rate}: it must be above 0, and finite")
    if not (math.isfinite(restore_cost) and restore_cost >= 0):
        raise ValueError(f"restore_cost is {restore_cost}: it must be 0 or more, and finite")
    places = _best_places(steps, rate, restore_cost)
    every = range(len(steps) - 1)
    mean = sum(step.snapshot_cost for step in steps) / len(steps) if steps else 0.0
    return Advice(
        after=tuple(places),
        expected_cost=expected_cost(steps, places, rate, restore_cost),
        expected_cost_without=expected_cost(steps, (), rate, restore_cost),
        expected_cost_of_all=expected_cost(steps, every, rate, restore_cost),
        failure_rate=rate,
        interval=young_interval(mean, 1 / rate),
    )


def expected_cost(
    steps: Sequence[Step], after: Sequence[int], rate: float, restore_cost: float
) -> float:
    """Return the mean cost of a rollout with snapshots after the named steps."""
    done = [0.0, *accumulate(step.redo_cost for step in steps)]
    ends = [place + 1 for place in after] + [len(steps)]
    begins = [0, *ends[:-1]]
    return sum(
        _segment(done[end] - done[begin], _snapshot_at(steps, end), rate, restore_cost)
        for begin, end in zip(begins, ends, strict=True)
    )


def _best_places(steps: Sequence[Step], rate: float, restore_cost: float) -> list[int]:
    """Return the steps after which the cheapest plan has its snapshots.

    best[end] is the least mean cost of the first `end` steps, a snapshot after the last of them
    included; came_from[end] is where the segment begins that ends there.
    """
    done = [0.0, *accumulate(step.redo_cost for step in steps)]
    best, came_from = [0.0], [0]
    for end in range(1, len(steps) + 1):
        snapshot = _snapshot_at(steps, end)
        least, begin_of_least = math.inf, end - 1
        for begin in range(end - 1, -1, -1):
            work = done[end] - done[begin]
            cost = best[begin] + _segment(work, snapshot, rate, restore_cost)
            if cost < least:
                least, begin_of_least = cost, begin
            if steps[begin].is_risky:
                break  # No segment may reach over the snapshot that must stand before it.
        best.append(least)
        came_from.append(begin_of_least)
    return _walked_back(came_from)


def _walked_back(came_from: Sequence[int]) -> list[int]:
    places, end = [], len(came_from) - 1
    while end > 0:
        end = came_from[end]
        if end > 0:
            places.append(end - 1)
    return places[::-1]


def _snapshot_at(steps: Sequence[Step], end: int) -> float:
    """Return the cost of a snapshot after the first `end` steps; the last step needs none."""
    return steps[end - 1].snapshot_cost if 0 < end < len(steps) else 0.0


def _segment(work: float, snapshot_cost: float, rate: float, restore_cost: float) -> float:
    try:
        return math.expm1(rate * (work + snapshot_cost)) * (1 / rate + restore_cost)
    except OverflowError:
        return math.inf
