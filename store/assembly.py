"""The assembler: makes, delivers and closes batches, each step one atomic commit.

A decision reads `dispositions` at version v and is appended as version v + 1; if anybody
else committed first it is made again. So no sample is ever in two batches, however many
assemblers run.

What a decision must read does not grow with history. Each notes the low-water mark: the
position below which no sample is open. Older files are left out by their statistics.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa

from ..validators.errors import Refused, Unknown
from .clock import Clock
from .delta import Snapshot, Table, retrying
from .engine import Engine
from .intake import as_json
from .journal import journal, lowest
from .passes import Moment, Pass, foresee, make_pass
from .schema import TableName
from .settings import Settings

# Decisions are read first: a sample that came after them is merely seen earlier.
READ_TABLES: tuple[TableName, ...] = ("dispositions", "samples", "rewards", "weights")
# What the steps of a pass read besides tables.
PASS_VIEWS = ("grading", "sample_decision", "sample_state", "batch")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ack:
    """What an acknowledgement came to; `is_first` is False if it had been made before."""

    batch_id: str
    samples: int
    is_first: bool


class Assembler:
    """Makes, delivers and closes batches."""

    def __init__(self, tables: dict[TableName, Table], clock: Clock, settings: Settings) -> None:
        self._tables = tables
        self._clock = clock
        self._settings = settings
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection, if one was opened."""
        if self._engine:
            self._engine.close()

    # -- reading -----------------------------------------------------------------------------

    def _look(self) -> tuple[Engine, Moment]:
        """Mount what is open, in the newest versions, and return what it was."""
        snapshots: dict[TableName, Snapshot] = {
            name: self._tables[name].snapshot() for name in READ_TABLES
        }
        if self._engine is None:
            self._engine = Engine()
        moment = mount_open(self._engine, snapshots, self._clock())
        return self._engine, moment

    def _decide(self, decide: Callable[[Engine, Moment], tuple[T, pa.Table | None]]) -> T:
        """Decide and commit; if somebody else committed first, decide again.

        `decide` returns (result, rows); rows None means that there is nothing to commit.
        """
        results: list[T] = []

        def attempt() -> None:
            # The steps of a decision leave tables in the engine, so threads take turns.
            with self._lock:
                engine, moment = self._look()
                result, rows = decide(engine, moment)
                results[:] = [result]
                if rows is not None:
                    version = moment.snapshots["dispositions"].version
                    self._tables["dispositions"].append_at(version, rows)

        retrying(attempt, "dispositions")
        return results[0]

    # -- decisions ---------------------------------------------------------------------------

    def assemble(self, learner: str | None, stream: str, *, is_partial_wanted: bool) -> Pass:
        """Make one pass: discard, choose and cut.

        A learner gets a batch whose lease ran out before a new one. A pass for nobody leaves
        such a batch to the learner who comes next.
        """
        return self._decide(
            lambda engine, moment: self._pass(
                engine, moment, learner, stream, with_unheld=False, is_partial=is_partial_wanted
            )
        )

    def take(self, learner: str, stream: str, *, is_partial_wanted: bool) -> Pass:
        """Return a batch for a learner: one that nobody holds, else one made now."""
        return self._decide(
            lambda engine, moment: self._pass(
                engine, moment, learner, stream, with_unheld=True, is_partial=is_partial_wanted
            )
        )

    def _pass(  # noqa: PLR0913 - what a pass depends on, all of it
        self,
        engine: Engine,
        moment: Moment,
        learner: str | None,
        stream: str,
        *,
        with_unheld: bool,
        is_partial: bool,
    ) -> tuple[Pass, pa.Table | None]:
        if learner is not None:
            params = {"stream": stream, "with_unheld": with_unheld}
            waiting = engine.records("assemble/deliverable", params)
            if waiting:
                return self._deliver(engine, moment, waiting[0]["batch_id"], learner)
        return make_pass(
            engine,
            moment,
            self._settings,
            stream=stream,
            lease=self._lease(moment, learner),
            is_partial_wanted=is_partial,
        )

    def _deliver(
        self, engine: Engine, moment: Moment, batch_id: str, learner: str
    ) -> tuple[Pass, pa.Table]:
        rows = engine.run("assemble/batch_rows", {"batch_id": batch_id})
        turns = engine.run("assemble/batch_turns", {"batch_id": batch_id})[0][0].as_py()
        result = Pass(
            batch_id,
            self._settings.batch.turns,
            is_redelivered=True,
            turns=turns,
            samples=rows.num_rows,
        )
        return result, self._about(moment, "leased", batch_id, rows, self._lease(moment, learner))

    def _lease(self, moment: Moment, learner: str | None) -> dict[str, Any]:
        if learner is None:
            return {}
        until = moment.now + timedelta(seconds=self._settings.batch.lease_seconds)
        return {"learner": learner, "lease_until": until}

    def look(self, stream: str) -> dict[str, Any]:
        """Return what a pass would come to now, and what it holds; commits nothing."""
        with self._lock:
            engine, moment = self._look()
            return foresee(engine, moment, self._settings, stream)

    def ack(self, batch_id: str, figures: Mapping[str, Any] | None = None) -> Ack:
        """Mark a batch as trained; once: again it changes nothing and says so."""

        def decide(engine: Engine, moment: Moment) -> tuple[Ack, pa.Table | None]:
            rows, state = self._open_batch(engine, batch_id)
            if state == "trained":
                return Ack(batch_id, rows.num_rows, is_first=False), None
            if state == "released":
                raise Refused(f"batch {batch_id} was released: its samples are in the pool again")
            more = {"figures": as_json(figures) if figures else None}
            done = Ack(batch_id, rows.num_rows, is_first=True)
            return done, self._about(moment, "acked", batch_id, rows, more, fate="trained")

        return self._decide(decide)

    def release(self, batch_id: str) -> int:
        """Put a batch's samples back into the pool; returns how many. Once trained, refused."""

        def decide(engine: Engine, moment: Moment) -> tuple[int, pa.Table | None]:
            rows, state = self._open_batch(engine, batch_id)
            if state == "released":
                return 0, None
            if state == "trained":
                raise Refused(f"batch {batch_id} was trained: it cannot be released any more")
            returned = self._about(moment, "returned", batch_id, rows, {}, fate="released")
            return rows.num_rows, returned

        return self._decide(decide)

    def _open_batch(self, engine: Engine, batch_id: str) -> tuple[pa.Table, str]:
        """Return a batch's rows and state; raises Unknown if there never was one."""
        state = engine.run("assemble/batch_state", {"batch_id": batch_id})
        if not state.num_rows:
            # A batch that is closed for long lies below the low-water mark.
            engine.mount("dispositions", self._tables["dispositions"].snapshot())
            state = engine.run("assemble/batch_state", {"batch_id": batch_id})
        if not state.num_rows:
            raise Unknown(f"there is no batch {batch_id!r}")
        rows = engine.run("assemble/batch_rows", {"batch_id": batch_id})
        return rows, state[0][0].as_py()

    def _about(  # noqa: PLR0913, PLR0917 - the parts of a journal entry
        self,
        moment: Moment,
        kind: str,
        batch_id: str,
        rows: pa.Table,
        more: Mapping[str, Any],
        fate: str | None = None,
    ) -> pa.Table:
        """Return a decision about a whole batch, and about its samples where it has a fate."""
        balance = json.dumps(dict(moment.balance))
        header = {"kind": kind, "position": lowest(rows), "balance": balance, **more}
        common = moment.common(batch_id, kind=fate)
        return journal(common, header, rows if fate else None)


def mount_open(engine: Engine, snapshots: Mapping[TableName, Snapshot], now: datetime) -> Moment:
    """Mount all rows that an open sample may need, and return what a decision depends on."""
    decisions = snapshots["dispositions"]
    low_water = decisions.greatest("low_water") or 0
    for name, snapshot in snapshots.items():
        if name == "weights":
            engine.mount(name, snapshot)
        else:
            files = snapshot.files_from("position", low_water)
            engine.mount(name, snapshot, files=files, from_position=low_water)
    current_version = snapshots["weights"].greatest("weight_version")
    show_moment(engine, now, current_version)
    engine.create_views(PASS_VIEWS)
    newest = decisions.files_from("sequence", decisions.greatest("sequence") or 0)
    engine.mount_as("latest", "dispositions", decisions, files=newest)
    balance = engine.records("assemble/latest_balance")
    owed = json.loads(balance[0]["balance"]) if balance else {}
    return Moment(snapshots, now, low_water, current_version, owed)


def show_moment(engine: Engine, now: datetime, current_version: int | None) -> None:
    """Make the present readable as the one-row table `moment`."""
    schema = pa.schema([("now", pa.timestamp("us", "UTC")), ("current_version", pa.int64())])
    row = {"now": now, "current_version": current_version}
    engine.show("moment", pa.Table.from_pylist([row], schema))
