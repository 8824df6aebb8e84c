"""The way into the book: samples with their trajectories and calls, and late rewards.

A sample is whole when it is visible. Its trajectory and its calls are committed first, the
sample's own row last, and all carry the position that only this row makes valid. What a
crash leaves behind points nowhere, and the same input again completes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from ..validators.cells import cell
from ..validators.columns import columns
from ..validators.compute import pc
from ..validators.digests import digest
from ..validators.errors import WriterStale
from ..validators.records import Call, Reward, Sample, Trajectory
from .clock import Clock
from .delta import Snapshot, Table, retrying
from .engine import Engine
from .files import Files
from .intake import ArrowStream, Gated, Refusal, Rows, gate
from .keyed import KeyedCalls, KeyedTable, Split, against, first_of_each
from .keys import KeyIndex
from .positions import COMMIT_WITHIN, Positions, moment_of
from .receipts import Receipt, quarantined, refusals
from .schema import TableName, declared_schema, stored_schema
from .vectors import pack

# What makes a sample traceable and repeatable; without one of them it is never trained on.
EVIDENCE = (
    "attempt",
    "turns",
    "weight_version",
    "image_digest",
    "seed",
    "toolchain_version",
    "dependency_digest",
)
# Where a sample was found does not make it another one: a moved file is the same file. Nor
# do its gaps: they follow from the other columns, and from a trajectory that was refused.
_COMPARED = [c.name for c in columns(Sample) if c.name not in ("source_ref", "gaps")]
_GRADING = ("reward_id", "sample_id", "grader", "rewarded_at")
_FIRST_STORED = "the content first stored under this id"


@dataclass(slots=True)
class Delivery:
    """The rows of one append after the gate, on their way into the tables.

    All are of one time, so that none seems to have come after the others.
    """

    samples: Gated
    trajectories: Gated
    calls: Gated
    receipt: Receipt
    at: datetime

    @property
    def refused_ids(self) -> set[Any]:
        """Return the ids of samples that were refused."""
        return {refusal.content.get("sample_id") for refusal in self.samples.refused}


class Ingest:
    """Takes rows in, exactly once."""

    def __init__(
        self, tables: dict[TableName, Table], engine: Engine, files: Files, clock: Clock
    ) -> None:
        self._tables = tables
        self._engine = engine
        self._clock = clock
        self._positions = Positions(clock)
        self._known_positions = KeyIndex(lambda paths: files.column(paths, "position", pa.int64()))
        self.samples = KeyedTable(tables["samples"], engine, files)
        self.rewards = KeyedTable(tables["rewards"], engine, files)
        self.quarantine = KeyedTable(tables["quarantine"], engine, files)
        self.configs = KeyedTable(tables["configs"], engine, files)
        self.heartbeats = KeyedTable(tables["heartbeats"], engine, files)
        self.incidents = KeyedTable(tables["incidents"], engine, files)
        self.calls = KeyedCalls(tables["calls"], engine, files, tables["samples"])

    def append(
        self, samples: Rows | None, trajectories: Rows | None, calls: Rows | None
    ) -> Receipt:
        """Take in samples with what belongs to them; what is refused goes to quarantine."""
        gated = gate(Sample, samples)
        delivery = Delivery(
            gated,
            gate(Trajectory, trajectories),
            gate(Call, calls),
            Receipt(gated.arrived),
            self._clock(),
        )
        rows, heavy = self._link(delivery)
        stored = self._store(rows, heavy, delivery)
        conflicts = stored.conflicts.drop_columns(["ingested_at", "is_traceable"])
        gated.refused += refusals(conflicts, "conflict", "sample_id", _FIRST_STORED)
        self._refuse_other_trajectories(stored.duplicates, heavy, delivery)
        self._append_late_calls(stored, delivery)
        self._settle(stored, delivery)
        return delivery.receipt

    def _link(self, delivery: Delivery) -> tuple[pa.Table, pa.Table]:
        """Return each sample once with its bookkeeping, and the trajectories that have one."""
        unique = first_of_each(delivery.samples.accepted, "sample_id", _COMPARED)
        delivery.samples.refused += refusals(
            unique.conflicts, "conflict", "sample_id", _FIRST_STORED
        )
        delivery.receipt.duplicates += unique.duplicates.num_rows
        each = first_of_each(delivery.trajectories.accepted, "sample_id")
        refused = delivery.trajectories.refused
        refused += refusals(each.conflicts, "repeated", "sample_id", "one trajectory a sample")
        lost = {refusal.content.get("sample_id") for refusal in refused}
        has_sample = _among(each.fresh.column("sample_id"), unique.fresh)
        refused += _orphans(
            each.fresh.filter(pc.invert(has_sample)), delivery, "a sample of this append"
        )
        samples = with_bookkeeping(unique.fresh, lost, delivery.at)
        return samples, _where(each.fresh, has_sample)

    def _store(self, rows: pa.Table, heavy: pa.Table, delivery: Delivery) -> Split:
        """Commit the heavy parts, then the sample rows; returns what became of the samples."""
        placed: dict[str, int] = {}
        parts = Split.all_fresh(rows)

        def attempt() -> None:
            nonlocal parts
            snapshot, parts = self.samples.split(rows, _COMPARED)
            if not parts.fresh.num_rows:
                return
            if not placed or self._is_taken(snapshot, placed):
                placed.update(self._place(parts.fresh, snapshot))
                self._append_heavy(heavy, placed, delivery)
                self._append_calls(delivery.calls.accepted, placed, delivery)
            stored = _placed(parts.fresh, placed)
            _check_age(stored.column("position")[0].as_py(), self._clock())
            names = declared_schema("samples").names
            self.samples.table.append_at(snapshot.version, stored.select(names))

        if rows.num_rows:
            retrying(attempt, "samples")
        return parts

    def _place(self, fresh: pa.Table, snapshot: Snapshot) -> dict[str, int]:
        """Give each sample a position that no stored one has.

        Within a delivery they follow the end of the attempts, ties by id, whatever the order
        of its rows; so the position breaks ties as the id would.
        """
        order = pc.sort_indices(
            fresh, sort_keys=[("finished_at", "ascending"), ("sample_id", "ascending")]
        )
        keys = fresh.column("sample_id").take(order).to_pylist()
        while True:
            placed = dict(zip(keys, self._positions.take(len(keys)), strict=True))
            if not self._is_taken(snapshot, placed):
                return placed
            self._positions.draw_writer()

    def _is_taken(self, snapshot: Snapshot, placed: Mapping[str, int]) -> bool:
        """Whether another writer gave one of our positions to a sample of its own."""
        if min(placed.values()) > (snapshot.greatest("position") or 0):
            return False
        self._known_positions.absorb(snapshot)
        positions = pa.array(list(placed.values()), pa.int64())
        return bool(self._known_positions.suspects(positions).any())

    def _append_heavy(self, heavy: pa.Table, placed: Mapping[str, int], delivery: Delivery) -> None:
        ours = _placed(_of(heavy, placed), placed)
        if ours.num_rows:
            names = stored_schema("trajectories").names
            self._tables["trajectories"].append(pack(_in_order(ours)).select(names))
        delivery.receipt.trajectories = ours.num_rows

    def _append_calls(self, calls: pa.Table, placed: Mapping[str, int], delivery: Delivery) -> None:
        unique = first_of_each(_of(calls, placed), "call_id")
        rows = _placed(unique.fresh, placed)
        parts = self.calls.append_once(rows, [column.name for column in columns(Call)])
        conflicts = pa.concat_tables([unique.conflicts, parts.conflicts.drop_columns("position")])
        delivery.calls.refused += refusals(conflicts, "conflict", "call_id", _FIRST_STORED)
        delivery.receipt.calls += parts.fresh.num_rows

    def _append_late_calls(self, stored: Split, delivery: Delivery) -> None:
        """Store calls of samples that were in the book before; refuse those of no sample."""
        calls = delivery.calls.accepted
        calls = calls.filter(pc.invert(_among(calls.column("sample_id"), stored.fresh)))
        if calls.num_rows == 0:
            return
        owners = self.positions_of(pc.unique(calls.column("sample_id")))
        # A sample may come twice in one delivery: refused, and as what is stored already.
        for refused in delivery.refused_ids.difference(stored.duplicates["sample_id"].to_pylist()):
            owners.pop(refused, None)
        is_known = pc.is_in(calls.column("sample_id"), pa.array(list(owners), pa.string()))
        orphans = calls.filter(pc.invert(is_known))
        delivery.calls.refused += _orphans(orphans, delivery, "a sample of the book")
        self._append_calls(calls, owners, delivery)

    def _refuse_other_trajectories(
        self, duplicates: pa.Table, heavy: pa.Table, delivery: Delivery
    ) -> None:
        """Refuse a second trajectory of a stored sample unless it equals the first."""
        again = heavy.filter(_among(heavy.column("sample_id"), duplicates))
        if again.num_rows == 0:
            return
        owners = self.positions_of(again.column("sample_id"))
        stored = self._engine.matching(
            self._tables["trajectories"].snapshot(),
            "trajectories",
            "position",
            pa.array(list(owners.values()), pa.int64()),
        )
        known = {row["sample_id"]: row for row in stored.drop_columns("position").to_pylist()}
        parts = against(pack(again), "sample_id", known)
        differing = pa.concat_tables([parts.conflicts, parts.fresh])
        delivery.trajectories.refused += refusals(
            again.filter(_among(again.column("sample_id"), differing)),
            "conflict",
            "sample_id",
            "the trajectory first stored with this sample",
        )

    def _settle(self, stored: Split, delivery: Delivery) -> None:
        """Count what was stored and keep what was refused."""
        receipt = delivery.receipt
        receipt.added += stored.fresh.num_rows
        receipt.duplicates += stored.duplicates.num_rows
        traceable = pc.sum(stored.fresh.column("is_traceable")).as_py() or 0
        receipt.held += stored.fresh.num_rows - traceable
        self._keep("samples", delivery.samples.refused, receipt, delivery.at)
        self._keep("trajectories", delivery.trajectories.refused, receipt, delivery.at)
        self._keep("calls", delivery.calls.refused, receipt, delivery.at)

    def _keep(self, table: str, refused: list[Refusal], receipt: Receipt, at: datetime) -> None:
        if refused:
            rows = first_of_each(quarantined(table, refused, at), "quarantine_id")
            self.quarantine.append_once(rows.fresh, ["quarantine_id"])
            receipt.refuse(refused)

    def positions_of(self, sample_ids: pa.Array | pa.ChunkedArray) -> dict[str, int]:
        """Return the positions of those samples that the book holds."""
        snapshot = self._tables["samples"].snapshot()
        rows = self._engine.matching(snapshot, "samples", "sample_id", sample_ids)
        ids, positions = rows.column("sample_id").to_pylist(), rows.column("position").to_pylist()
        return dict(zip(ids, positions, strict=True))

    def reward(self, rewards: Rows) -> Receipt:
        """Take in gradings of samples that are in the book."""
        gated = gate(Reward, with_reward_ids(rewards))
        receipt = Receipt(gated.arrived)
        unique = first_of_each(gated.accepted, "reward_id")
        owners = self.positions_of(pc.unique(unique.fresh.column("sample_id")))
        rows = _placed(_of(unique.fresh, owners), owners)
        rows = rows.append_column("recorded_at", _repeat(self._clock(), rows.num_rows))
        parts = self.rewards.append_once(rows, [column.name for column in columns(Reward)])
        receipt.added = parts.fresh.num_rows
        receipt.duplicates = parts.duplicates.num_rows + unique.duplicates.num_rows
        known = pa.array(list(owners), pa.string())
        unknown = unique.fresh.filter(pc.invert(pc.is_in(unique.fresh.column("sample_id"), known)))
        conflicts = parts.conflicts.drop_columns(["position", "recorded_at"])
        gated.refused += refusals(unknown, "sample_unknown", "sample_id", "a sample of the book")
        gated.refused += refusals(
            pa.concat_tables([unique.conflicts, conflicts]),
            "conflict",
            "reward_id",
            _FIRST_STORED,
        )
        self._keep("rewards", gated.refused, receipt, self._clock())
        return receipt


def with_bookkeeping(samples: pa.Table, lost: set[Any], now: datetime) -> pa.Table:
    """Add what the book knows of samples: all their gaps, when they came, their evidence.

    A sample whose trajectory was delivered and refused (`lost`) has the gap `trajectory`.
    """
    measured = [column.name for column in columns(Sample) if column.kind == "measured"]
    absent = [np.asarray(pc.is_null(samples.column(name).combine_chunks())) for name in measured]
    is_lost = np.array([key in lost for key in samples.column("sample_id").to_pylist()], bool)
    traceable = ~is_lost
    for name in EVIDENCE:
        traceable &= ~absent[measured.index(name)]
    gaps = _gaps([*measured, "trajectory"], np.column_stack([*absent, is_lost]))
    index = samples.schema.get_field_index("gaps")
    samples = samples.set_column(index, samples.schema.field("gaps"), gaps)
    samples = samples.append_column("ingested_at", _repeat(now, samples.num_rows))
    return samples.append_column("is_traceable", pa.array(traceable, pa.bool_()))


def _gaps(names: list[str], absent: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.ListArray:
    """Return for each row (axis 0) the names (axis 1) that are absent."""
    rows, places = np.nonzero(absent)
    ends = np.cumsum(np.bincount(rows, minlength=len(absent)))
    offsets = pa.array(np.concatenate(([0], ends)), pa.int32())
    values = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), names)
    return pa.ListArray.from_arrays(offsets, values.dictionary_decode())


def with_reward_ids(rewards: Rows) -> Rows:
    """Give a grading without an id the one that the same grading always gets."""
    if isinstance(rewards, ArrowStream):
        named: ArrowStream = _table_with_reward_ids(pa.table(rewards))
        return named
    rows = [r.model_dump() if isinstance(r, BaseModel) else dict(r) for r in rewards]
    return [row | {"reward_id": _reward_id(row)} for row in rows]


def _table_with_reward_ids(rewards: pa.Table) -> pa.Table:
    """Give ids to the rows of a table; a column of ids that are no text is left to the gate."""
    named = {name: rewards[name] for name in _GRADING if name in rewards.column_names}
    for name, column in named.items():
        if pa.types.is_timestamp(column.type):
            named[name] = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    rows = range(rewards.num_rows)
    ids = [_reward_id({name: cell(named[name][row]) for name in named}) for row in rows]
    if not all(isinstance(key, str) for key in ids):
        return rewards
    others = rewards.select([name for name in rewards.column_names if name != "reward_id"])
    return others.append_column("reward_id", pa.array(ids, pa.string()))


def _reward_id(row: Mapping[str, Any]) -> Any:
    if row.get("reward_id") is not None:
        return row["reward_id"]
    moment = row.get("rewarded_at")
    if isinstance(moment, datetime) and moment.utcoffset() is not None:
        moment = moment.astimezone(UTC).isoformat(timespec="microseconds")
    return digest(f"{row.get('sample_id')}|{row.get('grader')}|{moment}")


def _repeat(moment: datetime, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(moment, pa.timestamp("us", "UTC")), count)


def _of(rows: pa.Table, placed: Mapping[str, int]) -> pa.Table:
    """Return the rows whose sample has a position."""
    return _where(rows, pc.is_in(rows.column("sample_id"), pa.array(list(placed), pa.string())))


def _where(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """Return the rows where the mask is true; all of them without copying any."""
    return rows if pc.all(mask).as_py() else rows.filter(mask)


def _in_order(rows: pa.Table) -> pa.Table:
    """Return rows in order of position; rows that are in order are not copied."""
    positions = rows.column("position").to_numpy()
    return rows if (np.diff(positions) > 0).all() else rows.sort_by("position")


def _placed(rows: pa.Table, placed: Mapping[str, int]) -> pa.Table:
    """Return rows with the position of their sample."""
    positions = [placed[key] for key in rows.column("sample_id").to_pylist()]
    return rows.append_column("position", pa.array(positions, pa.int64()))


def _among(keys: pa.ChunkedArray, samples: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(keys, samples.column("sample_id").combine_chunks())


def _orphans(rows: pa.Table, delivery: Delivery, bound: str) -> list[Refusal]:
    """Refuse rows without a sample, saying so where it is because their sample was refused."""
    refused = delivery.refused_ids
    flags = pa.array([key in refused for key in rows.column("sample_id").to_pylist()], pa.bool_())
    return [
        *refusals(rows.filter(flags), "sample_refused", "sample_id", "a sample that was let in"),
        *refusals(rows.filter(pc.invert(flags)), "sample_unknown", "sample_id", bound),
    ]


def _check_age(position: int, now: datetime) -> None:
    if now - moment_of(position) > COMMIT_WITHIN:
        raise WriterStale(
            f"rows waited more than {COMMIT_WITHIN} for their commit: append them again"
        )
