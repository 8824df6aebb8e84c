"""Hindsight: a decision of the past made again, and the book as it was at a time.

The pipeline reads no clock and no setting of its own, so the same table versions, the same
moment and the same settings must give the same rows. Where they do not, the rows that differ
are told.

The book at a time is made of the rows that were written by then. Nothing is updated in place,
and every row says when it was written, so any time can be asked for, however long ago, also
when the table versions of that time are gone.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..validators.errors import Unknown, VersionExpired
from .assembly import PASS_VIEWS, READ_TABLES, mount_open, show_moment
from .delta import Snapshot, Table
from .engine import Engine
from .facts import Facts, gather
from .passes import Moment, foresee, run_steps
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
    with closing(Engine()) as engine:
        moment = mount_open(engine, snapshots, noted["decided_at"])
        partial = noted["is_partial"]
        run_steps(engine, moment, settings, noted["stream"], is_partial_wanted=partial)
        engine.show("derived", engine.run("assemble/decided"))
        engine.show("noted", rows)
        differences = tuple(engine.run("why/differences").to_pylist())
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


def facts_at(
    tables: Mapping[TableName, Table], settings: Settings, stream: str, at: datetime
) -> Facts:
    """Return what was known at a time about the next batch of a stream.

    The settings are those of the newest pass by then; where there was none, those given.
    """
    # Decisions are read first, as for the present.
    names: list[TableName] = sorted(tables, key=lambda name: name != "dispositions")
    snapshots: dict[TableName, Snapshot] = {name: tables[name].snapshot() for name in names}
    with closing(Engine()) as asked, closing(Engine()) as foreseen:
        for name, snapshot in snapshots.items():
            asked.mount(name, snapshot, until=at)
        left = asked.run("why/moment").to_pylist()[0]
        show_moment(asked, at, left["current_version"])
        asked.create_views()
        then = Settings.model_validate_json(left["settings"]) if left["settings"] else settings
        moment = _mount_open_at(foreseen, snapshots, left, at)
        return gather(asked, foresee(foreseen, moment, then, stream), then, stream, at)


def _mount_open_at(
    engine: Engine,
    snapshots: Mapping[TableName, Snapshot],
    left: Mapping[str, Any],
    at: datetime,
) -> Moment:
    """Mount all rows that a sample needed that was open at a time."""
    low_water = left["low_water"] or 0
    for name in READ_TABLES:
        least = None if name == "weights" else low_water
        engine.mount(name, snapshots[name], from_position=least, until=at)
    show_moment(engine, at, left["current_version"])
    engine.create_views(PASS_VIEWS)
    balance = json.loads(left["balance"] or "{}")
    return Moment(snapshots, at, low_water, left["current_version"], balance)
