"""What is usually done: batches of whatever finished first, full by tasks or by turns."""

from collections.abc import Sequence

import numpy as np

from bench.crowd import CLASSES, Crowd, Ints, turns_by_class


class FirstCome:
    """Takes tasks in the order of their ends, under the same discard lines as ours."""

    def __init__(self, crowd: Crowd, caps: Sequence[int], *, least: int, by_turns: bool) -> None:
        self._crowd = crowd
        self._caps = np.asarray(caps)[crowd.classes]
        self._least = least
        self._sizes = crowd.turns if by_turns else np.ones(len(crowd), np.int64)
        self._pending: list[int] = []
        self._batches: list[Ints] = []
        self._versions = np.zeros(len(crowd), np.int64)
        self._discarded = np.zeros(len(CLASSES), np.int64)

    def receive(self, start: int, versions: Ints, now: float) -> None:  # noqa: ARG002
        """Take in tasks from number `start` on, with the weight versions of their dispatch."""
        self._versions[start : start + len(versions)] = versions
        self._pending.extend(range(start, start + len(versions)))

    def take(self, version: int, now: float) -> int:  # noqa: ARG002
        """Take a batch; return how much is missing where there is none yet, else 0."""
        is_stale = {
            task for task in self._pending if version - self._versions[task] > self._caps[task]
        }
        for task in is_stale:
            self._discarded[self._crowd.classes[task]] += 1
        self._pending = [task for task in self._pending if task not in is_stale]
        sums = np.cumsum(self._sizes[self._pending])
        full = int(np.searchsorted(sums, self._least)) + 1
        if full > len(sums):
            return self._least - int(sums[-1] if len(sums) else 0)
        taken, self._pending = self._pending[:full], self._pending[full:]
        turns = turns_by_class(self._crowd.classes[taken], self._crowd.turns[taken])
        self._batches.append(turns)
        return 0

    def trained(self, version: int, now: float) -> None:
        """Hear that the batch was trained, and of the weights that came of it."""

    def sizes(self, start: int) -> Ints:
        """Return what tasks from `start` on add to a batch."""
        return self._sizes[start:]

    def batches(self) -> Ints:
        """Return the turns of every batch (axis 0) by class (axis 1)."""
        return np.array(self._batches)

    def discarded(self) -> Ints:
        """Return how many tasks of each class were discarded."""
        return self._discarded
