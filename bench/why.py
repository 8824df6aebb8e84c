"""How long `rollbook why` takes on a book of 1,000,000 samples, stalled in eight ways.

In the ways of the supply and of the gate few samples are pending, the others were trained. They
are also timed with all samples pending and a batch that is larger than all of them; in the other
ways all samples are pending anyway.
"""

import json
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench import passes
from bench.rows import START, in_schema, samples
from bench.run import Figure, workspace
from rollbook.ledger import explain
from rollbook.store import Book, Settings
from rollbook.store.positions import first_position_of

_PENDING = 1_000_000
_FEW = 400
_REFUSED = 250_000
_CHUNK = 250_000
_WARM = 5
_NOW = START + timedelta(hours=2)
# The pending samples of 8 turns each are short of this.
_MORE_THAN_ALL = 10_000_000


@dataclass(frozen=True)
class _Way:
    """One way to stall.

    Attributes:
        verdict: what `why` must find.
        turns: turns that complete a batch.
        published: the newest published weight version; the samples were made by 7.
        beat: what the producer says of itself.
        beat_at: when it says so.
        settings: further settings.
    """

    verdict: str
    turns: int = _MORE_THAN_ALL
    published: int = 7
    beat: dict[str, Any] = field(default_factory=lambda: {"in_flight": 9})
    beat_at: datetime = _NOW
    settings: dict[str, Any] = field(default_factory=dict)


_WAYS = (
    _Way("producers_dead", beat_at=START),
    _Way("exhausted", beat={"in_flight": 0, "is_exhausted": True}),
    _Way("in_flight", beat={"in_flight": 2, "in_flight_turns": 20}),
    _Way("gate"),
    _Way(
        "failure_quota",
        turns=4096,
        settings={"default_task_type": {"success_at": 2.0, "failure_share": 0.25}},
    ),
    _Way("discard_line", turns=4096, published=100),
    _Way("unpublished", turns=4096, published=3),
    _Way("learner_not_acking", turns=4096),
)


def why() -> Iterator[Figure]:
    """Time facts and verdict in each of the eight ways; the verdict must be right."""
    with workspace() as folder:
        _fill(folder / "pending")
        passes.fill(folder / "trained", _PENDING, _FEW)
        for way in _WAYS:
            more = {}
            first, *warm = _times(folder / "pending", way)
            if way.turns == _MORE_THAN_ALL:
                more["seconds with all of them pending"] = statistics.median(warm)
                first, *warm = _times(folder / "trained", replace(way, turns=4096))
            yield _figure(way, warm, {"first of a fresh connection": first, **more})


def _fill(root: Path) -> None:
    """Make a book of pending samples, written past the gate."""
    first = first_position_of(START)
    with Book.create(root, clock=lambda: START) as book:
        for start in range(0, _PENDING, _CHUNK):
            rows = samples(start, _CHUNK)
            columns = {name: rows.column(name) for name in rows.column_names}
            columns["position"] = np.arange(first + start, first + start + _CHUNK)
            same = {"ingested_at": START, "is_traceable": True, "origin": "original", "gaps": []}
            book.tables["samples"].append(in_schema("samples", _CHUNK, columns, same))
        list(book.maintain())


def _stall(root: Path, way: _Way) -> None:
    """Stall a book of pending samples in a way."""
    with Book.open(root, _settings(way), clock=lambda: START) as book:
        book.publish(way.published)
        if way.verdict == "gate":
            book.tables["quarantine"].append(_refused())
        if way.verdict == "learner_not_acking":
            book.assemble("trainer-0")
    with Book.open(root, clock=lambda: way.beat_at) as book:
        book.heartbeat("producer", **way.beat)


def _settings(way: _Way) -> Settings:
    batch = {"turns": way.turns, "lease_seconds": 60.0}
    return Settings.model_validate({"batch": batch, **way.settings})


def _refused() -> Any:
    """Return rows that the gate refused for the want of a tenant, as it keeps them."""
    fields = samples(0, 1).drop_columns(["tenant"]).to_pylist()[0]
    numbers = range(_PENDING, _PENDING + _REFUSED)
    ids = [f"sample-{number:012d}" for number in numbers]
    text = json.dumps(fields, default=str, sort_keys=True)
    columns = {
        "quarantine_id": ids,
        "row_id": ids,
        "content": [text.replace(fields["sample_id"], key) for key in ids],
    }
    finding = {"rule": "missing", "field": "tenant", "value": "absent", "bound": "required"}
    same = {"of_table": "samples", "findings": [finding], "quarantined_at": START}
    return in_schema("quarantine", _REFUSED, columns, same)


def _times(base: Path, way: _Way) -> list[float]:
    """Stall a copy of a book and return the seconds of each answer, the first one too."""
    root = base.parent / way.verdict
    shutil.copytree(base, root)
    _stall(root, way)
    with Book.open(root, _settings(way), clock=lambda: _NOW) as book:
        times = [_seconds(book, way) for _ in range(1 + _WARM)]
    shutil.rmtree(root)
    return times


def _figure(way: _Way, warm: list[float], more: dict[str, float]) -> Figure:
    value = statistics.median(warm)
    spread = (min(warm), max(warm))
    name = f"why: {way.verdict}"
    return Figure(name, value, "s", "<= 1", value <= 1, _PENDING, spread=spread, more=more)


def _seconds(book: Book, way: _Way) -> float:
    start = time.perf_counter()
    found = explain(book.facts())
    seconds = time.perf_counter() - start
    if found.verdict != way.verdict:
        raise RuntimeError(f"the verdict should be {way.verdict}: {found.sentence}")
    return seconds
