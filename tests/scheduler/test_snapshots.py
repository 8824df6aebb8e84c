"""Snapshots stand where they save more than they cost."""

import math
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.scheduler import Step, advise_snapshots, failure_rate, snapshot_is_due
from rollbook.scheduler.snapshots import expected_cost, young_interval

COSTS = st.floats(0, 500)
STEPS = st.lists(st.builds(Step, COSTS, st.floats(0, 60), st.booleans()), min_size=1, max_size=9)
RATES = st.floats(1e-4, 1e-2)


def allowed(steps: list[Step], after: tuple[int, ...]) -> bool:
    """Return whether a snapshot stands before every risky step but the first."""
    return all(nth - 1 in after for nth, step in enumerate(steps) if step.is_risky and nth)


@given(STEPS, RATES, st.floats(0, 100))
def test_no_other_places_are_cheaper(steps: list[Step], rate: float, restore: float) -> None:
    found = advise_snapshots(steps, rate, restore_cost=restore)

    inner = range(len(steps) - 1)
    plans = [plan for size in range(len(steps)) for plan in combinations(inner, size)]
    costs = [expected_cost(steps, p, rate, restore) for p in plans if allowed(steps, p)]
    assert allowed(steps, found.after)
    assert found.expected_cost == pytest.approx(min(costs), rel=1e-9)
    assert found.expected_cost <= found.expected_cost_of_all * (1 + 1e-9)


@pytest.mark.parametrize(
    ("snapshot", "between", "interval"),
    [(4, 3600, 169.7), (16, 600, 138.6), (60, 600, 268.3)],
)
def test_young_interval_is_that_of_the_literature(
    snapshot: float, between: float, interval: float
) -> None:
    assert round(young_interval(snapshot, between), 1) == interval


def test_equal_steps_get_snapshots_at_about_the_interval_of_young() -> None:
    steps = [Step(1.0, 4.0)] * 3400

    found = advise_snapshots(steps[:1000], 1 / 3600)

    gaps = [later - place for place, later in zip(found.after, found.after[1:], strict=False)]
    assert {gap for gap in gaps if not 160 <= gap <= 175} == set()
    assert found.expected_cost < found.expected_cost_without


def test_the_expected_cost_is_what_simulated_failures_come_to() -> None:
    chance = Random(7)
    steps = [Step(chance.lognormvariate(3, 1), chance.choice([4.0, 16.0])) for _ in range(60)]
    rate = 1 / 1800
    found = advise_snapshots(steps, rate, restore_cost=5.0)

    runs = [simulated(steps, found.after, rate, 5.0, chance) for _ in range(4000)]

    mean = sum(runs) / len(runs)
    spread = math.sqrt(sum((run - mean) ** 2 for run in runs) / len(runs) / len(runs))
    assert abs(mean - found.expected_cost) < 4 * spread
    assert found.expected_cost < found.expected_cost_of_all < found.expected_cost_without


def simulated(
    steps: list[Step], after: tuple[int, ...], rate: float, restore: float, chance: Random
) -> float:
    """Return what one rollout costs if failures come at random."""
    total, begin = 0.0, 0
    for end in [*(place + 1 for place in after), len(steps)]:
        work = sum(step.redo_cost for step in steps[begin:end])
        work += steps[end - 1].snapshot_cost if end < len(steps) else 0
        while (failed_after := chance.expovariate(rate)) < work:
            total += failed_after + restore
        total += work
        begin = end
    return total


def test_a_snapshot_stands_where_it_is_cheap_and_before_a_long_step() -> None:
    steps = [Step(50, 90), Step(50, 2), Step(900, 90), Step(10, 90)]

    assert advise_snapshots(steps, 1 / 1800).after == (1,)


def test_a_snapshot_always_stands_before_a_risky_step_but_not_before_the_first() -> None:
    steps = [Step(1, 50, is_risky=True), Step(1, 50), Step(1, 50, is_risky=True)]

    assert advise_snapshots(steps, 1e-6).after == (1,)


def test_a_rollout_of_no_step_needs_nothing() -> None:
    found = advise_snapshots([], 0.1)

    assert (found.after, found.expected_cost, found.interval) == ((), 0.0, 0.0)


def test_a_rollout_that_never_ends_without_snapshots_costs_infinitely_much() -> None:
    found = advise_snapshots([Step(1000.0, 1.0)] * 10, 0.1)

    assert found.expected_cost_without == math.inf
    assert found.after == tuple(range(9))
    assert found.expected_cost < math.inf


@pytest.mark.parametrize(
    ("redo", "snapshot", "due"), [(169, 4, False), (170, 4, True), (0, 0, False), (1, 0, True)]
)
def test_while_a_rollout_runs_a_snapshot_is_due_when_a_failure_would_cost_the_interval(
    redo: float, snapshot: float, *, due: bool
) -> None:
    assert snapshot_is_due(redo, snapshot, 1 / 3600) is due


def test_a_rate_is_never_zero_and_comes_from_what_was_seen() -> None:
    assert failure_rate(0, 0, prior_exposure=3600) == 1 / 3600
    assert failure_rate(9, 6400, prior_exposure=3600) == 10 / 10_000


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Step(-1, 0), "redo_cost is -1: it must be 0 or more"),
        (lambda: Step(0, math.nan), "snapshot_cost is nan"),
        (lambda: advise_snapshots([], 0), "the failure rate is 0: it must be above 0"),
        (lambda: advise_snapshots([], 1, restore_cost=-2), "restore_cost is -2"),
        (lambda: failure_rate(-1, 0, prior_exposure=1), "-1 failures over 0"),
        (lambda: failure_rate(0, 0, prior_exposure=0), "prior_exposure is 0: it must be above 0"),
    ],
)
def test_costs_and_rates_that_are_none_are_refused(call: "object", says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()  # type: ignore[operator]
