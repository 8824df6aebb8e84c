"""The book: one store, opened by its address."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self, get_args

import pyarrow as pa

from ..sql import statements
from ..validators.digests import canonical, digest
from ..validators.errors import BookMissing, Refused, Unknown
from ..validators.records import Heartbeat, Weight
from ..validators.single import check_record
from .alarms import Alarms
from .assembly import Ack, Assembler, show_moment
from .batch import Batch
from .clock import Clock, system_clock
from .delta import Table, retrying
from .engine import Engine
from .facts import Facts, gather
from .files import Files
from .group import GroupWriter
from .hindsight import Decision, Rederived, facts_at, rederive
from .ingest import Ingest
from .intake import Rows
from .maintenance import Maintained, Maintainer
from .passes import Pass
from .queries import as_refusal, read_only
from .questions import question
from .receipts import Receipt
from .schema import TableName, declared_schema
from .settings import Settings
from .settings_file import SETTINGS_FILE

TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
STREAMS = ("train", "replay")


class Book:
    """One store: rows in, batches out, questions in SQL.

    Safe to share between threads, and any number of processes may have the same book open.
    """

    def __init__(
        self,
        root: str,
        settings: Settings,
        clock: Clock,
        storage_options: Mapping[str, str] | None,
    ) -> None:
        self.root = root
        self.settings = settings
        self._clock = clock
        self.tables: dict[TableName, Table] = {
            name: Table(
                root,
                name,
                storage_options=storage_options,
                checkpoint_commits=settings.storage.checkpoint_commits,
            )
            for name in TABLE_NAMES
        }
        self._files = Files(root, storage_options)
        self._engine = Engine(root if self._files.is_local else None)
        self._ingest = Ingest(self.tables, self._engine, self._files, clock)
        self._assembler = Assembler(self.tables, clock, settings)
        self._alarms = Alarms(
            self._ingest.incidents,
            self.tables,
            settings.alarms,
            clock,
            lambda name, params: self._mounted().run(name, params).to_pylist(),
        )
        self._has_settings_stored = False

    @classmethod
    def create(
        cls,
        uri: str | Path,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Create a book, or open it if it is there already; settings as for `open`."""
        root = _root(uri)
        book = cls(root, settings or own_settings(root), clock, storage_options)
        # The samples come last: a book whose making was cut short is none yet.
        for table in reversed(book.tables.values()):
            table.create(keep_days=book.settings.storage.keep_days)
        return book

    @classmethod
    def open(
        cls,
        uri: str | Path,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Open a book; raises BookMissing, BookTooNew, BookUnreadable or SettingsInvalid.

        Without settings those of the book's own file hold, or else the defaults.
        """
        root = _root(uri)
        book = cls(root, settings or own_settings(root), clock, storage_options)
        try:
            book.tables["samples"].snapshot()
        except BookMissing:
            raise BookMissing(f"there is no book at {root}: create one with init") from None
        return book

    @property
    def is_local(self) -> bool:
        """Whether the book lies in a local folder."""
        return self._files.is_local

    # -- writing -----------------------------------------------------------------------------

    def append(
        self,
        samples: Rows | None = None,
        *,
        trajectories: Rows | None = None,
        calls: Rows | None = None,
    ) -> Receipt:
        """Take in samples and what belongs to them: Arrow, polars or records.

        Delivered again, a row is counted as a duplicate and dropped; with other content
        under the same id it goes to quarantine, as does every row that breaks a rule.
        What is stored when this returns is durable.
        """
        return self._ingest.append(samples, trajectories, calls)

    def reward(self, rewards: Rows) -> Receipt:
        """Settle rewards that came late, or grade again: rows of `rewards`.

        A grading without `reward_id` gets one from sample, grader and time.
        """
        return self._ingest.reward(rewards)

    def publish(
        self, weight_version: int, *, uri: str | None = None, publisher: str | None = None
    ) -> bool:
        """Register a weight version; returns False if it was registered before.

        Raises Refused for a version that is none, or not greater than the current one.
        """
        row = {
            "weight_version": weight_version,
            "published_at": self._clock(),
            "uri": uri,
            "publisher": publisher,
        }
        if findings := check_record(Weight, row):
            raise Refused(f"weight version {weight_version!r} is refused: {findings[0]}")
        rows = pa.Table.from_pylist([row], declared_schema("weights"))
        is_new = False

        def attempt() -> None:
            nonlocal is_new
            snapshot = self.tables["weights"].snapshot()
            known = self._engine.matching(
                snapshot, "weights", "weight_version", rows.column("weight_version")
            )
            if known.num_rows:
                return
            current = snapshot.greatest("weight_version")
            if current is not None and weight_version < current:
                raise Refused(
                    f"weight version {weight_version} is below the current {current}:"
                    " versions only grow"
                )
            self.tables["weights"].append_at(snapshot.version, rows)
            is_new = True

        retrying(attempt, "weights")
        return is_new

    def heartbeat(
        self,
        producer: str,
        *,
        in_flight: int,
        in_flight_turns: int | None = None,
        is_exhausted: bool = False,
    ) -> None:
        """Note that a producer lives, what it is making, and whether it has no task left.

        Raises Refused for a beat that breaks a rule.
        """
        now = self._clock()
        row = {
            "beat_id": digest(f"{producer}@{now.isoformat()}"),
            "producer": producer,
            "beat_at": now,
            "in_flight": in_flight,
            "in_flight_turns": in_flight_turns,
            "is_exhausted": is_exhausted,
        }
        if findings := check_record(Heartbeat, row):
            raise Refused(f"heartbeat of {producer!r} is refused: {findings[0]}")
        rows = pa.Table.from_pylist([row], declared_schema("heartbeats"))
        self._ingest.heartbeats.append_once(rows, ["beat_id"])

    def keep_config(self, document: Mapping[str, Any], kind: str = "rollout") -> str:
        """Keep a configuration under its fingerprint, and return that."""
        text = canonical(dict(document))
        row = {
            "fingerprint": digest(text),
            "kind": kind,
            "document": text,
            "recorded_at": self._clock(),
        }
        rows = pa.Table.from_pylist([row], declared_schema("configs"))
        self._ingest.configs.append_once(rows, ["fingerprint"])
        return str(row["fingerprint"])

    # -- batches -----------------------------------------------------------------------------

    def assemble(self, learner: str | None = None, *, stream: str = "train") -> Pass:
        """Make one assembler pass; with a learner, its batch is leased to it."""
        _check_stream(stream)
        self._keep_settings()
        made = self._assembler.assemble(learner, stream, is_partial_wanted=self._is_at_end())
        self._alarms.settle(made, stream)
        return made

    def batches(
        self, learner: str, *, stream: str = "train", wait_seconds: float = 0.0
    ) -> Iterator[Batch]:
        """Yield batches for a learner: what nobody holds, what a lease let go, then new ones.

        Args:
            learner: who takes them; it holds each for the lease.
            stream: `train` (originals and resamples) or `replay`; never both in one batch.
            wait_seconds: how long to wait for the next batch before giving up.
        """
        _check_stream(stream)
        self._keep_settings()
        deadline = time.monotonic() + wait_seconds
        while True:
            made = self._assembler.take(learner, stream, is_partial_wanted=self._is_at_end())
            self._alarms.settle(made, stream)
            if made.batch_id:
                yield self.batch(made.batch_id)
                deadline = time.monotonic() + wait_seconds
            elif time.monotonic() >= deadline:
                return
            else:
                time.sleep(min(0.5, wait_seconds))

    def _is_at_end(self) -> bool:
        """Whether a short batch is wanted, because the data have ended."""
        end = self.settings.end
        if end.policy == "hold":
            return False
        params = {"timeout_seconds": end.producer_timeout_seconds}
        return bool(self._mounted().run("assemble/has_ended", params)[0][0].as_py())

    def batch(self, batch_id: str) -> Batch:
        """Return a batch by id, whatever became of it; raises Unknown if there is none."""
        engine = self._mounted()
        rows = engine.run("assemble/batch_rows", {"batch_id": batch_id})
        if rows.num_rows == 0:
            raise Unknown(f"there is no batch {batch_id!r}")
        return Batch(batch_id, rows, self.tables, self._engine, self._files)

    def ack(self, batch_id: str, figures: Mapping[str, Any] | None = None) -> Ack:
        """Mark a batch as trained, once; `figures` is what the learner hands back with it."""
        return self._assembler.ack(batch_id, figures)

    def release(self, batch_id: str) -> int:
        """Put the samples of an untrained batch back into the pool; returns how many."""
        return self._assembler.release(batch_id)

    # -- upkeep ------------------------------------------------------------------------------

    def writer(self) -> GroupWriter:
        """Return a writer that commits many small deliveries in groups."""
        storage = self.settings.storage
        return GroupWriter(self, rows=storage.group_rows, seconds=storage.group_seconds)

    def maintain(self) -> Iterator[Maintained]:
        """Compact, checkpoint and vacuum every table; harmless beside anything."""
        storage = self.settings.storage
        yield from Maintainer(self.tables, self._files, self._clock, storage).run()

    # -- questions ---------------------------------------------------------------------------

    def sql(self, name: str, **params: Any) -> pa.Table:
        """Answer a named question of `sql/` over the newest versions of all tables."""
        with as_refusal(name):
            return self._mounted().run(question(name), params)

    def query(self, text: str) -> pa.Table:
        """Answer one read-only SQL query over all tables and views; raises Refused for others."""
        with as_refusal():
            return self._mounted().query(read_only(text))

    def answers(self, folder: str) -> dict[str, pa.Table]:
        """Answer every statement of a folder of `sql/`, by name, on the same mounted versions."""
        engine = self._mounted()
        return {found.name: engine.run(found) for found in statements(folder)}

    def facts(self, stream: str = "train", *, at: datetime | None = None) -> Facts:
        """Return everything that is known about the next batch of a stream, now or at a time.

        Raises Refused for a time that is still to come.
        """
        _check_stream(stream)
        now = self._clock()
        if at is None:
            seen = self._assembler.look(stream)
            return gather(self._mounted(), seen, self.settings, stream, now)
        if at > now:
            raise Refused(f"{at.isoformat()} is still to come: it is {now.isoformat()}")
        return facts_at(self.tables, self.settings, stream, at)

    def decision(self, batch_id: str) -> Decision:
        """Return how a batch came to be: its pass, and the passes that were blocked before it.

        Raises Unknown if there is no such batch.
        """
        engine = self._mounted()
        found = engine.run("why/pass", {"batch_id": batch_id}).to_pylist()
        if not found:
            raise Unknown(f"there is no batch {batch_id!r}")
        before = {"sequence": found[0]["sequence"], "stream": found[0]["stream"]}
        return Decision(batch_id, found[0], engine.run("why/waits", before).to_pylist())

    def rederive(self, batch_id: str) -> Rederived:
        """Make the decision behind a batch again, on the table versions that it noted.

        Raises Unknown for a batch that is not there or whose settings are not stored, and
        VersionExpired if a table version is not kept any more.
        """
        noted = self.decision(batch_id).header
        rows = self._mounted().run("why/noted", {"sequence": noted["sequence"]})
        return rederive(self.tables, noted, batch_id, rows)

    def _mounted(self) -> Engine:
        # Decisions are read first: none is then about a sample or settings that are not seen.
        for name in sorted(TABLE_NAMES, key=lambda name: name != "dispositions"):
            self._engine.mount(name, self.tables[name].snapshot())
        current = self.tables["weights"].snapshot().greatest("weight_version")
        show_moment(self._engine, self._clock(), current)
        self._engine.create_views()
        return self._engine

    def _keep_settings(self) -> None:
        """Keep the settings that decisions cite by their fingerprint."""
        if not self._has_settings_stored:
            self.keep_config(self.settings.model_dump(mode="json"), kind="settings")
            self._has_settings_stored = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; nothing that matters is in memory."""
        self._engine.close()
        self._assembler.close()


def _check_stream(stream: str) -> None:
    if stream not in STREAMS:
        raise ValueError(f"there is no stream {stream!r}: there are {' and '.join(STREAMS)}")


def own_settings(root: str) -> Settings:
    """Return the settings in a local book's own file, or the defaults where there is none."""
    path = Path(root) / SETTINGS_FILE
    return Settings.read(path) if "://" not in root and path.is_file() else Settings()


def _root(uri: str | Path) -> str:
    text = str(uri).rstrip("/")
    return text if "://" in text else str(Path(text).absolute())
