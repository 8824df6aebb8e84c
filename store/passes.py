"""One assembler pass: the pipeline of steps, and what it says as rows of the journal.

The steps are statements in `sql/assemble/`, run in the order of `SINGLE` or `GROUPED`,
then `SHARED`; each leaves a table for the ones after it. Nothing here decides anything.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..validators.compute import pc
from .delta import Snapshot
from .engine import Engine
from .journal import journal, lowest
from .positions import COMPLETE_AFTER, first_position_of
from .rulebook import rulebook
from .schema import TableName
from .settings import Settings

SINGLE = ("seen", "units_single", "discards_single")
GROUPED = ("seen", "members", "groups", "units_grouped", "discards_grouped")
SHARED = (
    "front",
    "quota",
    "truncation",
    "accounts",
    "ordered",
    "cut",
    "verdict",
    "chosen",
    "held",
)
_BALANCE = pa.schema(
    [
        ("is_ours", pa.bool_()),
        ("stratum", pa.string()),
        ("task_type", pa.string()),
        ("settled_turns", pa.int64()),
        ("settled_turn_seconds", pa.int64()),
        ("first_start", pa.int64()),
        ("credit", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one assembler pass came to.

    Attributes:
        batch_id: the batch that was made or came out again; None if there is none.
        target_turns: turns that complete a batch.
        is_redelivered: whether it is a batch that was made before.
        turns: turns in the batch.
        samples: samples in the batch.
        pending_turns: turns that were ready for the batch.
        discarded: samples that were discarded in this pass.
        blocker: why there is no batch: short, no_gradient, least_share.
        is_partial: whether the batch is short on purpose, at the end of the data.
        dead_streak: how many units in a row were of no use, up to the newest.
        dead_reasons: why, with the number of samples each.
        funnel: samples and turns by step, reason and task type.
    """

    batch_id: str | None
    target_turns: int
    is_redelivered: bool = False
    turns: int = 0
    samples: int = 0
    pending_turns: int = 0
    discarded: int = 0
    blocker: str | None = None
    is_partial: bool = False
    dead_streak: int = 0
    dead_reasons: str | None = None
    funnel: tuple[dict[str, Any], ...] = ()

    @property
    def missing_turns(self) -> int:
        """Return how many turns the next batch is short of."""
        return 0 if self.batch_id else max(self.target_turns - self.pending_turns, 0)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a decision is made on.

    Attributes:
        snapshots: the table versions that were read.
        now: the time.
        low_water: the position below which nothing is open.
        current_version: the learner's weight version.
        balance: what the newest decision left for the next: up to which position arrivals are
            counted, and by stream its blocker, its dead streak and what each stratum is owed.
    """

    snapshots: Mapping[TableName, Snapshot]
    now: datetime
    low_water: int
    current_version: int | None
    balance: Mapping[str, Any]

    @property
    def sequence(self) -> int:
        """Return the table version that the decision will be."""
        return self.snapshots["dispositions"].version + 1

    @property
    def horizon(self) -> int:
        """Return the position from which on rows may still be on their way."""
        return first_position_of(self.now - COMPLETE_AFTER)

    def account(self, stream: str) -> Mapping[str, Any]:
        """Return what the newest decision left for a stream."""
        account: Mapping[str, Any] = self.balance.get("streams", {}).get(stream, {})
        return account

    def common(self, batch_id: str | None, **more: Any) -> dict[str, Any]:
        """Return what all rows of a decision share."""
        return {
            "sequence": self.sequence,
            "low_water": self.low_water,
            "decided_at": self.now,
            "batch_id": batch_id,
            **more,
        }


def run_steps(
    engine: Engine, moment: Moment, settings: Settings, stream: str, *, is_partial_wanted: bool
) -> None:
    """Run the pipeline; its steps leave their tables in the engine."""
    tables = rulebook(settings, stream, is_partial_wanted=is_partial_wanted)
    owed = [
        {"is_ours": name == stream, **row}
        for name, account in moment.balance.get("streams", {}).items()
        for row in account["strata"]
    ]
    tables["balance"] = pa.Table.from_pylist(owed, _BALANCE)
    for name, rows in tables.items():
        engine.show(name, rows)
    params = {"counted_to": moment.balance.get("counted_to", 0), "horizon": moment.horizon}
    for step in (*(GROUPED if settings.groups.size else SINGLE), *SHARED):
        engine.step(step, params)


def foresee(engine: Engine, moment: Moment, settings: Settings, stream: str) -> dict[str, Any]:
    """Return what a pass would come to, its funnel and what it would hold; nothing is decided."""
    run_steps(engine, moment, settings, stream, is_partial_wanted=False)
    outcome: dict[str, Any] = engine.run("assemble/outcome").to_pylist()[0]
    return outcome | {
        "funnel": engine.records("assemble/funnel"),
        "held": engine.run("why/held").to_pylist(),
    }


def make_pass(  # noqa: PLR0913 - what a pass depends on, all of it
    engine: Engine,
    moment: Moment,
    settings: Settings,
    *,
    stream: str,
    lease: Mapping[str, Any],
    is_partial_wanted: bool = False,
) -> tuple[Pass, pa.Table | None]:
    """Return what a pass comes to, and its rows; None where it changes nothing new."""
    run_steps(engine, moment, settings, stream, is_partial_wanted=is_partial_wanted)
    outcome = engine.run("assemble/outcome").to_pylist()[0]
    marks = {"horizon": moment.horizon, "before": moment.low_water}
    low_water = engine.records("assemble/low_water", marks)[0]["low_water"]
    account = moment.account(stream)
    params = {"carried": account.get("dead_streak", 0), "low_water": low_water}
    dead = engine.records("assemble/streak", params)[0]
    result = _result(engine, moment, settings, stream, outcome, dead)
    decided = engine.run("assemble/decided")
    if decided.num_rows == 0 and account.get("blocker") == result.blocker:
        return result, None
    header = _header(moment, settings, stream, outcome, result)
    header["balance"] = _balance(engine, moment, stream, result, dead["carried"])
    header |= dict(lease) if result.batch_id else {}
    return result, _rows(moment, low_water, header, decided)


def _result(  # noqa: PLR0913, PLR0917 - what it is made of
    engine: Engine,
    moment: Moment,
    settings: Settings,
    stream: str,
    outcome: Mapping[str, Any],
    dead: Mapping[str, Any],
) -> Pass:
    is_made = outcome["blocker"] is None
    return Pass(
        batch_id=f"{stream}-{moment.sequence:08d}" if is_made else None,
        target_turns=settings.batch.turns,
        turns=outcome["turns"],
        samples=outcome["samples"],
        pending_turns=outcome["pending_turns"],
        discarded=outcome["discarded"],
        blocker=outcome["blocker"],
        is_partial=is_made and outcome["is_partial"],
        dead_streak=dead["streak"],
        dead_reasons=dead["reasons"],
        funnel=tuple(engine.records("assemble/funnel")),
    )


def _balance(engine: Engine, moment: Moment, stream: str, result: Pass, carried: int) -> str:
    """Return what later passes need to know of those before them, as JSON."""
    strata: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for row in engine.records("assemble/balance_after"):
        strata[row.pop("is_ours")].append(row)
    other = "train" if stream == "replay" else "replay"
    streams = {
        stream: {"blocker": result.blocker, "dead_streak": carried, "strata": strata[True]},
        other: {**moment.account(other), "strata": strata[False]},
    }
    return json.dumps({"counted_to": moment.horizon, "streams": streams})


def ranked(funnel: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what kept turns out of a batch, by reason, most turns first."""
    turns: Counter[str] = Counter()
    for row in funnel:
        if row["step"] in ("held", "waiting", "discarded"):
            turns[row["reason"]] += row["turns"]
    order = sorted(turns.items(), key=lambda item: (-item[1], item[0]))
    return [{"reason": reason, "turns": kept_out} for reason, kept_out in order]


def _header(
    moment: Moment, settings: Settings, stream: str, outcome: Mapping[str, Any], result: Pass
) -> dict[str, Any]:
    return {
        "kind": "pass",
        "batch_id": result.batch_id,
        "stream": stream,
        "target_turns": result.target_turns,
        "turns": result.turns,
        "samples": result.samples,
        "units": outcome["units"],
        "discarded": result.discarded,
        "failed_turns": outcome["failed_turns"],
        "truncated_turns": outcome["truncated_turns"],
        "is_partial": result.is_partial,
        "blocker": result.blocker,
        "reasons": outcome["flat_sides"] if result.blocker == "no_gradient" else None,
        "unmet": outcome["unmet"],
        "settings_fingerprint": settings.fingerprint,
        "funnel": json.dumps(result.funnel),
        "blockers": json.dumps(ranked(result.funnel)),
        "table_versions": json.dumps({n: s.version for n, s in moment.snapshots.items()}),
    }


def _rows(moment: Moment, low_water: int, header: Mapping[str, Any], decided: pa.Table) -> pa.Table:
    common = moment.common(
        header["batch_id"], low_water=low_water, weight_version=moment.current_version
    )
    # A discarded sample belongs to no batch, an assigned one to this pass's. The header
    # stands with the latter: it must be read for as long as its batch is open.
    is_assigned = pc.equal(decided.column("kind"), "assigned")
    beside = decided.filter(is_assigned) if header["batch_id"] else decided
    position = lowest(beside) if beside.num_rows else low_water
    ids = pc.if_else(is_assigned, pa.scalar(header["batch_id"], pa.string()), None)
    rows = decided.rename_columns({"exceeded_limit": "limit"}).append_column("batch_id", ids)
    return journal(common, {**header, "position": position}, rows)
