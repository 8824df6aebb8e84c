"""How long an assembler pass takes, with few and with many samples before it."""

import statistics
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.rows import START, samples
from bench.run import Figure, workspace
from rollbook.store import Book, Settings
from rollbook.store.positions import first_position_of
from rollbook.store.schema import declared_schema

_CHUNK = 500_000
_PASSES = 7
# Every rule that a pass has is on, and none of them takes all there is.
_SETTINGS = Settings.model_validate(
    {
        "batch": {"turns": 4096, "truncated_share": 0.25, "max_unit_turns": 3000},
        "discard": {"max_wait_seconds": 10_000_000, "soft_wait_seconds": 1000.0},
        "duration_class": {"long": {"max_age_versions": 8}},
        "groups": {"size": 8, "min_members": 4},
        "shares": {"least": {"type-1/short": 0.05}},
        "default_task_type": {"failure_share": 0.5},
        "task_type": {"type-2": {"failure_share": 0.4}},
    }
)


def pass_10k() -> Figure:
    """Time a pass over 10,000 pending samples."""
    return _alone("pass_10k", pending=10_000, goal=0.1)


def pass_100k() -> Figure:
    """Time a pass over 100,000 pending samples."""
    return _alone("pass_100k", pending=100_000, goal=0.3)


def pass_1m() -> Figure:
    """Time a pass over 1,000,000 pending samples after 10,000,000 consumed ones, and after 1 M."""
    with workspace() as folder:
        fewer = _passes(folder / "fewer", pending=1_000_000, consumed=1_000_000)
    with workspace() as folder:
        times = _passes(folder / "book", pending=1_000_000, consumed=10_000_000)
    more = {
        "seconds after 1,000,000 consumed": statistics.median(fewer),
        "ratio, at most 1.2": statistics.median(times) / statistics.median(fewer),
    }
    return _figure("pass_1m", times, 1.5, 11_000_000, more)


def _alone(name: str, *, pending: int, goal: float) -> Figure:
    with workspace() as folder:
        times = _passes(folder / "book", pending=pending, consumed=0)
    return _figure(name, times, goal, pending, {})


def _figure(
    name: str, times: list[float], goal: float, rows: int, more: dict[str, float]
) -> Figure:
    value = statistics.median(times)
    return Figure(
        name,
        value,
        "s",
        f"<= {goal}",
        value <= goal,
        rows,
        spread=(min(times), max(times)),
        more={"first pass of a fresh process' connection": times[0], **more},
    )


def _passes(root: Path, *, pending: int, consumed: int) -> list[float]:
    """Return the seconds of each pass, its commit included."""
    now = START + timedelta(days=2)
    fill(root, consumed, pending)
    book = Book.open(root, _SETTINGS, clock=lambda: now)
    times = []
    for _ in range(_PASSES):
        start = time.perf_counter()
        made = book.assemble("bench")
        times.append(time.perf_counter() - start)
        if made.batch_id is None:
            raise RuntimeError(f"no batch was made: {made}")
    return times


def fill(root: Path, consumed: int, pending: int) -> None:
    """Make a book with trained samples and then pending ones, written past the gate."""
    book = Book.create(root, _SETTINGS, clock=lambda: START)
    book.publish(7)
    first = first_position_of(START)
    for start in range(0, consumed + pending, _CHUNK):
        count = min(_CHUNK, consumed + pending - start)
        book.tables["samples"].append(_stored(start, count, first))
        closed = min(count, max(consumed - start, 0))
        if closed:
            book.tables["dispositions"].append(_trained(start, closed, first))
    list(book.maintain())


def _stored(start: int, count: int, first: int) -> pa.Table:
    rows = samples(start, count)
    schema = declared_schema("samples")
    positions = pa.array(np.arange(first + start, first + start + count))
    own = {
        "position": positions,
        "ingested_at": pa.repeat(pa.scalar(START, pa.timestamp("us", "UTC")), count),
        "is_traceable": pa.repeat(pa.scalar(value=True), count),
        "origin": pa.repeat("original", count),
        "gaps": pa.array([[]] * count, pa.list_(pa.string())),
    }
    columns = []
    for field in schema:
        column = own.get(field.name)
        if column is None and field.name in rows.column_names:
            column = rows.column(field.name)
        columns.append(pa.nulls(count, field.type) if column is None else column.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _trained(start: int, count: int, first: int) -> pa.Table:
    schema = declared_schema("dispositions")
    numbers = np.arange(start, start + count)
    columns = {
        "sequence": pa.array(np.full(count, start // _CHUNK + 1)),
        "position": pa.array(first + numbers),
        "low_water": pa.array(np.full(count, first + start + count)),
        "kind": pa.repeat("trained", count),
        "decided_at": pa.repeat(pa.scalar(START, pa.timestamp("us", "UTC")), count),
        "batch_id": pa.array([f"train-{number // 512:08d}" for number in numbers]),
        "sample_id": pa.array([f"sample-{number:012d}" for number in numbers]),
    }
    arrays = [
        columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
