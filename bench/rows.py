"""Synthetic rows for benchmarks, made as whole Arrow tables."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.store.schema import TableName, declared_schema

START = datetime(2026, 1, 1, tzinfo=UTC)
CLASSES = ("short", "medium", "long")
_DIGEST = "sha256:" + "0" * 64


def samples(start: int, count: int, *, finished: datetime = START, turns: int = 8) -> pa.Table:
    """Return `count` sound, complete, rewarded samples with ids from `start` on."""
    numbers = np.arange(start, start + count)
    finished_at = np.datetime64(finished.replace(tzinfo=None), "us") + numbers.astype(
        "timedelta64[us]"
    )
    ends = pa.array(finished_at).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    begins = pa.array(finished_at - np.timedelta64(600, "s")).cast(pa.timestamp("us", "UTC"))
    ids = pa.array([f"sample-{number:012d}" for number in numbers])
    names = {"tenant": "tenant-a", "source": "bench", "status": "completed"}
    columns = {
        "sample_id": ids,
        "task_id": pa.array([f"task-{number // 8:012d}" for number in numbers]),
        "group_id": pa.array([f"task-{number // 8:012d}/0" for number in numbers]),
        "task_type": pa.array([f"type-{number // 8 % 5}" for number in numbers]),
        "duration_class": pa.array([CLASSES[number // 8 % 3] for number in numbers]),
        **{name: pa.repeat(text, count) for name, text in names.items()},
        "attempt": pa.repeat(pa.scalar(0, pa.int32()), count),
        "reward": pa.array((numbers % 2).astype(float)),
        "turns": pa.repeat(pa.scalar(turns, pa.int32()), count),
        "model_calls": pa.repeat(pa.scalar(turns, pa.int32()), count),
        "prompt_tokens": pa.array(numbers % 10_000),
        "completion_tokens": pa.array(numbers % 1_000),
        "env_seconds": pa.repeat(600.0, count),
        "external_calls": pa.repeat(pa.scalar(6, pa.int32()), count),
        "external_calls_failed": pa.repeat(pa.scalar(0, pa.int32()), count),
        "started_at": begins,
        "finished_at": ends,
        "weight_version": pa.repeat(pa.scalar(7, pa.int64()), count),
        "weight_version_end": pa.repeat(pa.scalar(7, pa.int64()), count),
        "config_fingerprint": pa.repeat(_DIGEST, count),
        "image_digest": pa.repeat(_DIGEST, count),
        "seed": pa.array(numbers.astype(np.uint64)),
        "toolchain_version": pa.repeat("bench 1", count),
        "dependency_digest": pa.repeat(_DIGEST, count),
    }
    return pa.table(columns)


def trajectories(start: int, count: int, tokens: int, random: np.random.Generator) -> pa.Table:
    """Return trajectories of random tokens for the samples of the same numbers."""
    size = count * tokens
    offsets = pa.array(np.arange(0, size + 1, tokens, dtype=np.int32))

    def lists(values: "np.ndarray[tuple[int], np.dtype[np.generic]]") -> pa.ListArray:
        return pa.ListArray.from_arrays(offsets, pa.array(values))

    return pa.table(
        {
            "sample_id": pa.array([f"sample-{n:012d}" for n in range(start, start + count)]),
            "token_ids": lists(random.integers(0, 150_000, size, dtype=np.int32)),
            "loss_mask": lists((random.random(size, dtype=np.float32) < 0.4).astype(np.uint8)),
            "behaviour_logprobs": lists(-random.exponential(0.5, size).astype(np.float32)),
            "token_versions": lists(np.full(size, 7, dtype=np.int32)),
        }
    )


def later(seconds: float) -> datetime:
    """Return a moment after the samples' time."""
    return START + timedelta(seconds=seconds)


def in_schema(
    table: TableName, count: int, columns: Mapping[str, Any], same: Mapping[str, Any]
) -> pa.Table:
    """Return rows of a table as it is declared: its columns, what is the same in all, null."""
    schema = declared_schema(table)
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(same.get(field.name), field.type), count)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
