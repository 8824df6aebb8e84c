"""DuckDB over snapshots of the tables.

Readers see a table as the list of its active Parquet files, which DuckDB reads itself:
that is the fastest way measured, and right for tables without deletion vectors and column
mapping, which is checked when a table is opened. Whatever differs between DuckDB versions
stands here.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from ..sql import Statement, statement, statements
from ..validators.compute import pc
from ..validators.errors import BookUnreadable, Unknown
from .delta import Snapshot
from .schema import LAYOUTS, TableName, stored_schema

# Tables whose rows count only if their sample is there; the plain names are views over these.
STORED_NAMES: dict[str, str] = {"trajectories": "trajectories_stored", "calls": "calls_stored"}

# A view may use the ones before it.
VIEWS = (
    "calls",
    "trajectories",
    "grading",
    "sample_decision",
    "sample_state",
    "sample_age",
    "ledger",
    "batch",
    "batch_sample",
    "decision",
    "supply",
    "incident",
)


def connect(root: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return an empty in-memory database that is set up as all our SQL expects.

    With a root, statements can reach no file outside of it, whatever they say.
    """
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    # Data files never change, so their footers are read once.
    connection.execute("SET parquet_metadata_cache = true")
    if root is not None:
        connection.execute("SET allowed_directories = [$root]", {"root": root})
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    return connection


class Engine:
    """One connection with the book's tables and views in it; safe to share between threads."""

    def __init__(self, root: str | None = None) -> None:
        self._connection = connect(root)
        self._lock = threading.RLock()
        self._mounted: dict[str, tuple[int, datetime | None, tuple[str, ...]]] = {}
        self._shown: dict[str, pa.Table] = {}
        self._has_views = False

    def mount(
        self,
        name: TableName,
        snapshot: Snapshot,
        *,
        files: list[str] | None = None,
        from_position: int | None = None,
        until: datetime | None = None,
    ) -> None:
        """Make a version of a table readable under its name.

        Args:
            name: the table.
            snapshot: the version.
            files: only these of its files.
            from_position: only rows at or after this position.
            until: only rows that were written by then, where a row says when.
        """
        wanted = snapshot.files if files is None else files
        view = STORED_NAMES.get(name, name)
        state = (from_position or 0, until, tuple(wanted))
        with self._lock, _readable():
            if self._mounted.get(view) == state:
                return
            relation = self._relation(name, wanted, is_evolved=snapshot.is_evolved)
            if from_position is not None:
                position = duckdb.ColumnExpression("position")
                relation = relation.filter(position >= duckdb.ConstantExpression(from_position))
            if until is not None and (column := LAYOUTS[name].time):
                written = duckdb.ColumnExpression(column)
                relation = relation.filter(written <= duckdb.ConstantExpression(until))
            relation.create_view(view, replace=True)
            self._mounted[view] = state

    def _relation(
        self, name: TableName, files: list[str], *, is_evolved: bool
    ) -> duckdb.DuckDBPyRelation:
        if files and not is_evolved:
            return self._connection.read_parquet(files)
        empty = f"empty_{name}"
        if self._mounted.get(empty) is None:
            self._connection.from_arrow(stored_schema(name).empty_table()).create(empty)
            self._mounted[empty] = (0, None, ())
        declared = self._connection.table(empty)
        if not files:
            return declared
        # Reading by name opens every file first, so it is kept for tables that need it.
        return as_declared(self._connection.read_parquet(files, union_by_name=True), declared)

    def mount_as(
        self, view: str, name: TableName, snapshot: Snapshot, files: list[str] | None = None
    ) -> None:
        """Make a version of a table, or some files of it, readable under another name."""
        with self._lock, _readable():
            wanted = snapshot.files if files is None else files
            relation = self._relation(name, wanted, is_evolved=snapshot.is_evolved)
            relation.create_view(view, replace=True)

    def show(self, name: str, rows: pa.Table) -> None:
        """Make a small Arrow table readable under a name, in place of what had it before.

        It is copied: a statement that joins an Arrow table goes through Python each time.
        """
        with self._lock:
            if (before := self._shown.get(name)) is not None and before.equals(rows):
                return
            self._connection.register("shown", rows)
            self._connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS FROM shown')
            self._connection.unregister("shown")
            self._shown[name] = rows

    def create_views(self, names: Iterable[str] = VIEWS) -> None:
        """Create the derived views over the mounted tables."""
        with self._lock:
            if not self._has_views:
                for name in names:
                    text = statement(f"views/{name}").text
                    self._connection.sql(text).create_view(name, replace=True)
                self._has_views = True

    def run(self, wanted: Statement | str, params: Mapping[str, Any] | None = None) -> pa.Table:
        """Run a named statement and return its rows; raises Unknown for a wrong name."""
        found = find(wanted) if isinstance(wanted, str) else wanted
        bound = bind(found, params or {})
        with _readable():
            return self.query(found.text, bound)

    def records(self, name: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Run a named statement that returns a few rows without times, as dictionaries.

        A relation is planned twice, when it is made and when it is read; this once.
        """
        found = find(name)
        with self._lock, _readable():
            done = self._connection.execute(found.text, bind(found, params or {}))
            names = [column[0] for column in done.description]
            return [dict(zip(names, row, strict=True)) for row in done.fetchall()]

    def step(self, name: str, params: Mapping[str, Any]) -> None:
        """Run a step of the assembler's pipeline, which leaves a table of its own name."""
        wanted = statement(f"assemble/{name}")
        with self._lock, _readable():
            own = {name: params[name] for name in wanted.params}
            self._connection.execute(wanted.text, own)

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> pa.Table:
        """Run SQL text and return its rows."""
        with self._lock:
            return self._connection.sql(text, params=dict(params or {})).to_arrow_table()

    def matching(
        self, snapshot: Snapshot, name: TableName, key: str, values: pa.Array | pa.ChunkedArray
    ) -> pa.Table:
        """Return the stored rows whose key is one of `values`."""
        if not snapshot.files or len(values) == 0:
            return stored_schema(name).empty_table()
        with self._lock, _readable():
            rows = self._relation(name, snapshot.files, is_evolved=snapshot.is_evolved)
            wanted = self._connection.from_arrow(pa.table({key: values}))
            return rows.join(wanted, key, how="semi").to_arrow_table().cast(stored_schema(name))

    def at_positions(
        self,
        snapshot: Snapshot,
        name: TableName,
        positions: pa.ChunkedArray,
        names: Iterable[str],
    ) -> pa.Table:
        """Return chosen columns of the rows at some positions."""
        bounds = pc.min_max(positions).as_py()
        files = snapshot.files_between("position", bounds["min"], bounds["max"])
        with self._lock, _readable():
            rows = self._relation(name, files, is_evolved=snapshot.is_evolved)
            wanted = self._connection.from_arrow(pa.table({"position": positions}))
            chosen = [f.name for f in stored_schema(name) if f.name in set(names)]
            found = rows.join(wanted, "position", how="semi").select(*chosen).to_arrow_table()
        return found.cast(pa.schema([stored_schema(name).field(n) for n in chosen]))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def _readable() -> Iterator[None]:
    """Raise BookUnreadable for what DuckDB says of a data file: it is absent or damaged."""
    try:
        yield
    except duckdb.Error as error:
        if ".parquet" not in str(error):
            raise
        raise BookUnreadable(str(error).strip()) from None


def as_declared(
    rows: duckdb.DuckDBPyRelation, declared: duckdb.DuckDBPyRelation
) -> duckdb.DuckDBPyRelation:
    """Return rows in the declared columns, null where all their files are older than a column."""
    present = set(rows.columns)
    return rows.select(
        *(
            (duckdb.ColumnExpression(name) if name in present else duckdb.ConstantExpression(None))
            .cast(kind)
            .alias(name)
            for name, kind in zip(declared.columns, declared.types, strict=True)
        )
    )


def find(name: str) -> Statement:
    """Return a statement by name; raises Unknown that lists what there is."""
    try:
        return statement(name)
    except KeyError:
        known = ", ".join(s.name for s in statements())
        raise Unknown(f"no statement {name!r}; there are: {known}") from None


def bind(wanted: Statement, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a statement, absent ones as null; raises Unknown for others."""
    if extra := sorted(set(given) - set(wanted.params)):
        takes = ", ".join(f"{name} {kind}" for name, kind in wanted.params.items()) or "none"
        raise Unknown(f"{wanted.name} takes no parameter {extra[0]!r}; it takes: {takes}")
    for value in given.values():
        if isinstance(value, str):
            value.encode()  # what UTF-8 cannot hold, some versions refuse without a word
    return {name: given.get(name) for name in wanted.params}
