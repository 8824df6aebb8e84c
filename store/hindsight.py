"""Hindsight: a decision of the past is made again, on the table versions that it noted.

The pipeline reads no clock and no setting of its own, so the same versions, the same moment
and the same settings must give the same rows. Where they do not, the rows that differ are told.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..validators.errors import Unknown, VersionExpired
from .assembly import READ_TABLES, mount_open
from .delta import Snapshot, Table
from .engine import Engine
from .passes import run_steps
from .schema import TableName
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Decision:
    """How a batch came to be.

    Attributes:
        batch_id: the batch.
        header: what its pass noted, as `why/pass` answers.
        waits: the passes of its stream that were blocked before it, as `why/waits` answers.
    """

    batch_id: str
    header: Mapping[str, Any]
    waits: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Rederived:
    """A past decision beside the same decision made again.

    Attributes:
        batch_id: the batch that it made.
        sequence: the version of `dispositions` that it is.
        table_versions: the versions that were read, then and now.
        rows: how many rows about samples it noted.
        differences: rows that stand on one side only; `side` is `noted` or `derived`.
    """

    batch_id: str
    sequence: int
    table_versions: Mapping[str, int]
    rows: int
    differences: tuple[dict[str, Any], ...]

    @property
    def is_same(self) -> bool:
        """Whether both decisions agree, row for row."""
        return not self.differences


def rederive(
    tables: Mapping[TableName, Table], noted: Mapping[str, Any], batch_id: str, rows: pa.Table
) -> Rederived:
    """Make a past decision again and compare.

    Args:
        tables: the book's tables.
        noted: the header of the pass, as `why/pass` answers.
        batch_id: the batch that it made.
        rows: its rows about samples, as `why/noted` answers.

    Raises Unknown if its settings are not stored, VersionExpired if a version is not kept.
    """
    settings = _settings_of(noted, batch_id)
    versions: dict[str, int] = json.loads(noted["table_versions"])
    snapshots = _snapshots(tables, versions, batch_id)
    engine = Engine()
    try:
        moment = mount_open(engine, snapshots, noted["decided_at"])
        partial = noted["is_partial"]
        run_steps(engine, moment, settings, noted["stream"], is_partial_wanted=partial)
        engine.show("derived", engine.run("assemble/decided"))
        engine.show("noted", rows)
        differences = tuple(engine.run("why/differences").to_pylist())
    finally:
        engine.close()
    return Rederived(batch_id, noted["sequence"], versions, rows.num_rows, differences)


def _settings_of(noted: Mapping[str, Any], batch_id: str) -> Settings:
    if noted["settings"] is None:
        raise Unknown(
            f"the settings of batch {batch_id} are not stored ({noted['settings_fingerprint']}):"
            " it cannot be derived again"
        )
    return Settings.model_validate_json(noted["settings"])


def _snapshots(
    tables: Mapping[TableName, Table], versions: Mapping[str, int], batch_id: str
) -> dict[TableName, Snapshot]:
    try:
        return {name: tables[name].snapshot(versions[name]) for name in READ_TABLES}
    except VersionExpired as gone:
        raise VersionExpired(f"batch {batch_id} cannot be derived again: {gone}") from None
