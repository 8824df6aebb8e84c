"""Decisions as rows of `dispositions`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..validators.compute import pc
from .schema import declared_schema


def journal(
    common: Mapping[str, Any], header: Mapping[str, Any], samples: pa.Table | None = None
) -> pa.Table:
    """Return one decision as rows: its header, then one row a sample; unstated is null."""
    first = pa.Table.from_pylist([{**common, **header}], declared_schema("dispositions"))
    if samples is None:
        return first
    columns = [
        samples.column(field.name).cast(field.type)
        if field.name in samples.column_names
        else pa.repeat(pa.scalar(common.get(field.name), field.type), samples.num_rows)
        for field in first.schema
    ]
    return pa.concat_tables([first, pa.Table.from_arrays(columns, schema=first.schema)])


def lowest(rows: pa.Table) -> int:
    """Return the lowest position among some samples."""
    return int(pc.min(rows.column("position")).as_py())
