"""Batches as a real book makes them: our SQL over our tables, in virtual time."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.crowd import CLASSES, Crowd, Ints
from bench.rows import START, in_schema, later
from rollbook.store import Book, Settings
from rollbook.store.positions import first_position_of

_DIGEST = "sha256:" + "0" * 64
_UTC = pa.timestamp("us", "UTC")
_TURNS = """
    SELECT
        COALESCE(SUM(s.turns) FILTER (WHERE s.duration_class = 'short'), 0) AS short,
        COALESCE(SUM(s.turns) FILTER (WHERE s.duration_class = 'medium'), 0) AS medium,
        COALESCE(SUM(s.turns) FILTER (WHERE s.duration_class = 'long'), 0) AS long
    FROM dispositions AS d
    JOIN samples AS s ON s.position = d.position
    WHERE d.kind = 'assigned'
    GROUP BY d.sequence
    ORDER BY d.sequence
"""
_DISCARDED = """
    SELECT
        COUNT(*) FILTER (WHERE s.duration_class = 'short') AS short,
        COUNT(*) FILTER (WHERE s.duration_class = 'medium') AS medium,
        COUNT(*) FILTER (WHERE s.duration_class = 'long') AS long
    FROM dispositions AS d
    JOIN samples AS s ON s.position = d.position
    WHERE d.kind = 'discarded'
"""


class InBook:
    """Writes tasks into a book as they end, and has its passes make the batches."""

    def __init__(self, crowd: Crowd, caps: Sequence[int], *, least: int, root: Path) -> None:
        self._crowd = crowd
        self._now = 0.0
        self._book = Book.create(root, _settings(caps, least), clock=lambda: later(self._now))
        self._book.publish(0)
        self._batch_id = ""

    def receive(self, start: int, versions: Ints, now: float) -> None:
        """Take in tasks from number `start` on, with the weight versions of their dispatch."""
        self._now = now
        if len(versions):
            self._book.tables["samples"].append(_samples(self._crowd, start, versions))

    def take(self, version: int, now: float) -> int:  # noqa: ARG002
        """Take a batch; return how much is missing where there is none yet, else 0."""
        self._now = now
        made = self._book.assemble("learner")
        if made.batch_id is None:
            return max(made.missing_turns, 1)
        self._batch_id = made.batch_id
        return 0

    def trained(self, version: int, now: float) -> None:
        """Hear that the batch was trained, and of the weights that came of it."""
        self._now = now
        self._book.ack(self._batch_id)
        self._book.publish(version)

    def sizes(self, start: int) -> Ints:
        """Return what tasks from `start` on add to a batch."""
        return self._crowd.turns[start:]

    def batches(self) -> Ints:
        """Return the turns of every batch (axis 0) by class (axis 1)."""
        return _by_class(self._book.query(_TURNS))

    def discarded(self) -> Ints:
        """Return how many tasks of each class were discarded."""
        counts: Ints = _by_class(self._book.query(_DISCARDED))[0]
        return counts


def _settings(caps: Sequence[int], least: int) -> Settings:
    lines = {name: {"max_age_versions": cap} for name, cap in zip(CLASSES, caps, strict=True)}
    return Settings.model_validate(
        {
            "batch": {"turns": least, "lease_seconds": 86_400},
            "discard": {"max_wait_seconds": None},
            "duration_class": lines,
        }
    )


def _by_class(rows: pa.Table) -> Ints:
    """Return the figures by row (axis 0), in the order of CLASSES (axis 1)."""
    return np.column_stack([rows[name].to_numpy() for name in CLASSES]).astype(np.int64)


def _samples(crowd: Crowd, start: int, versions: Ints) -> pa.Table:
    """Return ended tasks as rows of `samples`, with positions in the order of their ends."""
    count = len(versions)
    numbers = np.arange(start, start + count)
    part = slice(start, start + count)
    ends = [START + timedelta(seconds=second) for second in crowd.finished[part]]
    starts = [START + timedelta(seconds=second) for second in crowd.started[part]]
    columns = {
        "position": [first_position_of(end) + n for end, n in zip(ends, numbers, strict=True)],
        "ingested_at": pa.array(ends, _UTC),
        "sample_id": [f"sample-{number}" for number in numbers],
        "task_id": [f"task-{number}" for number in numbers],
        "duration_class": [CLASSES[place] for place in crowd.classes[part]],
        "turns": crowd.turns[part],
        "reward": (numbers % 2).astype(float),
        "env_seconds": crowd.finished[part] - crowd.started[part],
        "started_at": pa.array(starts, _UTC),
        "finished_at": pa.array(ends, _UTC),
        "weight_version": versions,
        "weight_version_end": versions,
        "seed": numbers,
        "gaps": [[]] * count,
    }
    same = {
        "tenant": "tenant-a",
        "task_type": "task",
        "source": "bench",
        "status": "completed",
        "origin": "original",
        "attempt": 0,
        "config_fingerprint": _DIGEST,
        "image_digest": _DIGEST,
        "toolchain_version": "bench 1",
        "dependency_digest": _DIGEST,
        "is_traceable": True,
    }
    return in_schema("samples", count, columns, same)
