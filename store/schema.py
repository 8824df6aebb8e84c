"""How the declared tables lie in Delta: storage types, statistics, fences, versions."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ..validators.arrow import arrow_schema
from ..validators.columns import Column, columns
from ..validators.records import TABLES

# Raised by one whenever a column is added; an older book gets the columns when it is opened.
# Its rows have null there, so what is added later is nullable.
SCHEMA_VERSION = 1
VERSION_PROPERTY = "rollbook.schema_version"
CREATED_PROPERTY = "rollbook.created_version"

TableName = Literal[
    "samples",
    "rewards",
    "trajectories",
    "calls",
    "weights",
    "dispositions",
    "quarantine",
    "configs",
    "heartbeats",
    "incidents",
]

VECTORS = ("token_ids", "loss_mask", "behaviour_logprobs", "token_versions")


@dataclass(frozen=True, slots=True)
class Layout:
    """How one table's files are laid out.

    Attributes:
        key: the column whose values are unique.
        statistics: the columns that prune files; they stand first in the table.
        checks: Delta constraints, the last fence, by name. Each must allow null itself.
        time: the column that says when a row was written; none where its sample's says so.
        row_group_rows: rows in a Parquet row group.
        compression: Parquet codec.
        has_dictionary: whether repeated values are stored once a row group.
    """

    key: str
    statistics: tuple[str, ...]
    checks: dict[str, str]
    time: str | None = None
    row_group_rows: int = 131_072
    compression: Literal["ZSTD", "LZ4_RAW"] = "ZSTD"
    has_dictionary: bool = True


LAYOUTS: dict[TableName, Layout] = {
    "samples": Layout(
        "sample_id",
        ("position", "ingested_at"),
        {
            "turns_not_negative": "turns IS NULL OR turns >= 0",
            "env_seconds_bounded": (
                "env_seconds IS NULL OR (env_seconds >= 0 AND env_seconds <= 2592000)"
            ),
            "ends_after_start": (
                "started_at IS NULL OR finished_at IS NULL OR started_at <= finished_at"
            ),
        },
        "ingested_at",
    ),
    "rewards": Layout("reward_id", ("position",), {}, "recorded_at"),
    # Log-probabilities hardly compress and repeat no value: a light codec and no dictionary.
    "trajectories": Layout(
        "position",
        ("position",),
        {},
        row_group_rows=16,
        compression="LZ4_RAW",
        has_dictionary=False,
    ),
    "calls": Layout(
        "call_id", ("position",), {"amount_not_negative": "amount IS NULL OR amount >= 0"}
    ),
    "weights": Layout(
        "weight_version",
        ("weight_version",),
        {"version_not_negative": "weight_version >= 0"},
        "published_at",
    ),
    "dispositions": Layout("sequence", ("sequence", "position", "low_water"), {}, "decided_at"),
    "quarantine": Layout("quarantine_id", ("quarantined_at",), {}, "quarantined_at"),
    "configs": Layout("fingerprint", ("recorded_at",), {}, "recorded_at"),
    "heartbeats": Layout("beat_id", ("beat_at",), {}, "beat_at"),
    "incidents": Layout("event_id", ("at",), {}, "at"),
}


def ordered_columns(table: TableName) -> list[Column]:
    """Return a table's columns as they are stored: those that prune first."""
    first = LAYOUTS[table].statistics
    declared = columns(TABLES[table])
    by_name = {column.name: column for column in declared}
    rest = [column for column in declared if column.name not in first]
    return [*(by_name[name] for name in first), *rest]


def declared_schema(table: TableName) -> pa.Schema:
    """Return a table's schema as readers see it, vectors as Arrow lists."""
    schema = arrow_schema(TABLES[table])
    return pa.schema([schema.field(column.name) for column in ordered_columns(table)])


def completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in a schema, null where their file is older than a column or a field in one."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def stored_schema(table: TableName) -> pa.Schema:
    """Return a table's schema as it lies in Delta, vectors as packed bytes."""
    schema = declared_schema(table)
    if table != "trajectories":
        return schema
    packed = [f.with_type(pa.binary()) if f.name in VECTORS else f for f in schema]
    return pa.schema(packed)
