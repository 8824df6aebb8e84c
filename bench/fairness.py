"""Whether what is learned is what was submitted: a learner in virtual time, and three orders.

20,000 tasks run in 64 slots; the learner takes one batch, trains for a fixed interval,
publishes weights, and takes the next, or waits until there is one. Supply is a little short
of what it could take, or well beyond it. The same arrivals are ordered by a real book (our
SQL, our tables) and by first come, first served: by number of tasks and by turns.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Protocol

import numpy as np

from bench.crowd import CLASSES, Crowd, Floats, Ints, crowd
from bench.first_come import FirstCome
from bench.in_book import InBook
from bench.run import Figure, workspace

_TASKS = int(os.environ.get("ROLLBOOK_BENCH_FAIRNESS_TASKS", "20000"))
_TURNS = 2304
_SUPPLIES = [
    float(text) for text in os.environ.get("ROLLBOOK_BENCH_FAIRNESS_SUPPLIES", "0.9 1.3 2").split()
]
# Steps that a sample may wait beyond the 90th percentile of its class's runs.
_SLACK = (2, 3, 4)
_WARM_UP_SECONDS = 6 * 3600
_WINDOW = 10
_GOAL = 1.0
_PROCESSES = 2


class Order(Protocol):
    """Takes in what ended, and makes batches of it."""

    def receive(self, start: int, versions: Ints, now: float) -> None:
        """Take in tasks from number `start` on, with the weight versions of their dispatch."""
        ...

    def take(self, version: int, now: float) -> int:
        """Take a batch; return how much is missing where there is none yet, else 0."""
        ...

    def trained(self, version: int, now: float) -> None:
        """Hear that the batch was trained, and of the weights that came of it."""
        ...

    def sizes(self, start: int) -> Ints:
        """Return what tasks from `start` on add to a batch."""
        ...

    def batches(self) -> Ints:
        """Return the turns of every batch (axis 0) by class (axis 1)."""
        ...

    def discarded(self) -> Ints:
        """Return how many tasks of each class were discarded."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a learner got under one order.

    Attributes:
        taken_at: seconds at which each batch was taken.
        turns: turns by batch (axis 0) and class (axis 1).
        waited_seconds: how long the learner waited for turns, all in all.
        discarded: tasks by class.
    """

    taken_at: Floats
    turns: Ints
    waited_seconds: float
    discarded: Ints

    def distances(self, submitted: Ints) -> tuple[float, float]:
        """Return total variation from the submitted mix in %: whole run, 95 % of windows."""
        warm = self.turns[self.taken_at >= _WARM_UP_SECONDS]
        sums = np.concatenate([np.zeros((1, len(CLASSES)), np.int64), np.cumsum(warm, axis=0)])
        width = min(_WINDOW, len(warm))
        windows = sums[width:] - sums[:-width]
        apart = [total_variation(window, submitted) for window in windows]
        return total_variation(sums[-1], submitted), float(np.quantile(apart, 0.95))


def total_variation(turns: Ints, others: Ints) -> float:
    """Return how far two mixes are apart, in %: half the sum of absolute differences."""
    return float(np.abs(turns / turns.sum() - others / others.sum()).sum() * 50)


def learn(tasks: Crowd, order: Order, step_seconds: float) -> Outcome:
    """Let a learner take batch after batch until the tasks run out."""
    published, taken_at = [0.0], []
    waited = 0.0
    received = 0
    now = 0.0
    while now < tasks.last_start:
        due = int(np.searchsorted(tasks.finished, now, side="right"))
        dispatched = np.searchsorted(published, tasks.started[received:due], side="right") - 1
        order.receive(received, dispatched, now)
        received = due
        if missing := order.take(len(published) - 1, now):
            now = _when_ended(tasks, order, received, missing)
            continue
        taken_at.append(now)
        waited += now - published[-1]
        now += step_seconds
        published.append(now)
        order.trained(len(published) - 1, now)
    return Outcome(np.array(taken_at), order.batches(), waited, order.discarded())


def _when_ended(tasks: Crowd, order: Order, received: int, missing: int) -> float:
    """Return when so much more will have ended; before that nothing changes for a learner."""
    more = int(np.searchsorted(np.cumsum(order.sizes(received)), missing))
    return float(tasks.finished[min(received + more, len(tasks) - 1)])


def fairness() -> Iterator[Figure]:
    """Compare the trained mix of turns with the submitted one, in every regime."""
    # A pass hardly keeps one core busy, so regimes run side by side, each in its process.
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as processes:
        yield from processes.map(_regime, *zip(*_regimes(crowd(_TASKS)), strict=True))


def _regimes(tasks: Crowd) -> Iterator[tuple[str, Crowd, list[int], float]]:
    """Yield a name, the tasks, the caps by class and the learner's step of every regime."""
    for supply in _SUPPLIES:
        step = _TURNS / tasks.turns_a_second * supply
        runs = tasks.longest_runs(step)
        own = [run + slack for run, slack in zip(runs, _SLACK, strict=True)]
        yield f"fairness, supply {supply} ×, one cap", tasks, [max(own)] * len(own), step
        yield f"fairness, supply {supply} ×, caps per class", tasks, own, step


def _regime(name: str, tasks: Crowd, caps: list[int], step: float) -> Figure:
    mean_turns = float(tasks.turns.mean())
    by_count = FirstCome(tasks, caps, least=round(_TURNS / mean_turns), by_turns=False)
    by_turns = FirstCome(tasks, caps, least=_TURNS, by_turns=True)
    with workspace() as folder:
        ours = learn(tasks, InBook(tasks, caps, least=_TURNS, root=folder / "book"), step)
    others = {
        "first-come by tasks": learn(tasks, by_count, step),
        "first-come by turns": learn(tasks, by_turns, step),
    }
    return _figure(name, tasks, caps, ours, others)


def _figure(
    name: str, tasks: Crowd, caps: list[int], ours: Outcome, others: dict[str, Outcome]
) -> Figure:
    submitted = tasks.submitted
    value, _ = ours.distances(submitted)
    rival = others["first-come by turns"]
    reference, _ = rival.distances(submitted)
    common = min(len(ours.taken_at), len(rival.taken_at))
    latest = float((ours.taken_at[:common] - rival.taken_at[:common]).max())
    more = {"batches": float(len(ours.taken_at)), "latest batch behind first-come, s": latest}
    more |= {f"age cap of {c}, versions": float(cap) for c, cap in zip(CLASSES, caps, strict=True)}
    for order, outcome in {"ours": ours, **others}.items():
        more |= _told(order, outcome, submitted)
    return Figure(
        name,
        value,
        "% of turns off",
        f"<= {_GOAL:g}, no batch later than first-come by turns",
        value <= _GOAL and latest <= 0,
        len(tasks),
        reference,
        value / reference,
        "first-come by turns",
        more=more,
    )


def _told(order: str, outcome: Outcome, submitted: Ints) -> dict[str, float]:
    whole, windows = outcome.distances(submitted)
    discarded = zip(CLASSES, outcome.discarded, strict=True)
    return {
        f"{order}: whole run, %": whole,
        f"{order}: 95 % of windows, %": windows,
        f"{order}: waited at T, s": outcome.waited_seconds,
        **{f"{order}: {name} discarded": float(count) for name, count in discarded},
    }
