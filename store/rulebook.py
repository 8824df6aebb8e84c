"""The settings as tables, which the pass's SQL joins."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from .settings import Settings

# Rewards that differ by less are equal: engines round differently (IEEE 754 sums).
FLAT_TOLERANCE = 1e-9

_RULES = pa.schema(
    [
        ("stream", pa.string()),
        ("turns", pa.int64()),
        ("max_unit_turns", pa.int64()),
        ("truncated_share", pa.float64()),
        ("max_age_versions", pa.int64()),
        ("max_wait_seconds", pa.float64()),
        ("soft_age_versions", pa.int64()),
        ("soft_wait_seconds", pa.float64()),
        ("reason_order", pa.list_(pa.string())),
        ("stale_policy", pa.string()),
        ("group_size", pa.int64()),
        ("min_members", pa.int64()),
        ("settle_seconds", pa.float64()),
        ("unusable_policy", pa.string()),
        ("flat_policy", pa.string()),
        ("flat_tolerance", pa.float64()),
        ("share_mode", pa.string()),
        ("least_share_wait_seconds", pa.float64()),
        ("success_at", pa.float64()),
        ("failure_share", pa.float64()),
        ("is_partial_wanted", pa.bool_()),
    ]
)
_LINE = pa.schema(
    [
        ("name", pa.string()),
        ("max_age_versions", pa.int64()),
        ("max_wait_seconds", pa.float64()),
        ("soft_age_versions", pa.int64()),
        ("soft_wait_seconds", pa.float64()),
    ]
)
_TASK_TYPE = pa.schema(
    [("name", pa.string()), ("success_at", pa.float64()), ("failure_share", pa.float64())]
)
_SHARE = pa.schema([("name", pa.string()), ("share", pa.float64())])


def rulebook(settings: Settings, stream: str, *, is_partial_wanted: bool) -> dict[str, pa.Table]:
    """Return the settings of a pass as tables by name."""
    groups = settings.groups
    rules = {
        **settings.batch.model_dump(),
        **settings.discard.model_dump(),
        "stream": stream,
        "stale_policy": settings.discard.policy,
        "group_size": groups.size,
        "min_members": groups.min_members or groups.size,
        "settle_seconds": groups.settle_seconds,
        "unusable_policy": groups.unusable,
        "flat_policy": groups.flat,
        "flat_tolerance": FLAT_TOLERANCE,
        "share_mode": settings.shares.mode,
        "least_share_wait_seconds": settings.shares.least_wait_seconds,
        **settings.default_task_type.model_dump(),
        "is_partial_wanted": is_partial_wanted,
    }
    return {
        "rules": pa.Table.from_pylist([rules], _RULES),
        "duration_class": _named(settings.duration_class, _LINE),
        "task_type_rule": _named(settings.task_type, _TASK_TYPE),
        "configured_share": _shares(settings.shares.configured),
        "minimum_share": _shares(settings.shares.least),
    }


def _named(sections: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    rows = [{"name": name, **section.model_dump()} for name, section in sections.items()]
    return pa.Table.from_pylist(rows, schema)


def _shares(shares: Mapping[str, float]) -> pa.Table:
    rows: Iterable[dict[str, Any]] = ({"name": n, "share": s} for n, s in shares.items())
    return pa.Table.from_pylist(list(rows), _SHARE)
