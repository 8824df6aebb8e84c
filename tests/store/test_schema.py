"""The tables on disk are the declared ones: in new books, in older ones, and in no others."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from deltalake.exceptions import DeltaError

from rollbook.store.book import TABLE_NAMES, Book
from rollbook.store.schema import (
    LAYOUTS,
    SCHEMA_VERSION,
    VECTORS,
    VERSION_PROPERTY,
    TableName,
    completed,
    declared_schema,
    ordered_columns,
    stored_schema,
)
from rollbook.validators.arrow import arrow_schema
from rollbook.validators.columns import columns
from rollbook.validators.errors import BookTooNew, BookUnreadable
from rollbook.validators.records import TABLES

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, MakeCall, OpenBook, Start, Worker

Row = dict[str, Any]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
Together = Callable[[list["Worker"]], list[list[Row]]]


def rows_of(book: Book, text: str) -> list[Any]:
    return [tuple(row.values()) for row in book.query(text).to_pylist()]


def on_disk(root: Path | str, table: str) -> DeltaTable:
    return DeltaTable(f"{root}/{table}")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, sample: "Make") -> Iterator[Book]:
    """Return a book that no test changes."""
    said = "SECRET: concurrent writers, invalid table version, metadata changed"
    plain = {"operation_id": "o", "tenant": "acme", "tool": "search"}
    with Book.create(tmp_path_factory.mktemp("schema") / "book") as book:
        book.publish(1)
        book.append(
            [sample(1), sample(2, error_message=said)],
            calls=[
                plain | {"call_id": "c1", "sample_id": "s1"},
                plain | {"call_id": "c2", "sample_id": "s2", "error_type": said},
            ],
        )
        yield book


# -- declared once --------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_arrow_delta_and_the_declared_columns_agree(kept: Book, table: TableName) -> None:
    delta = pa.schema(on_disk(kept.root, table).schema())
    declared = {column.name: column for column in columns(TABLES[table])}

    assert delta.names == [column.name for column in ordered_columns(table)]
    assert set(delta.names) == set(declared)
    assert delta.equals(stored_schema(table))
    for field in declared_schema(table):
        column = declared[field.name]
        assert field.nullable == column.nullable
        assert field.type == arrow_schema(TABLES[table]).field(field.name).type


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_a_table_says_its_version_and_keeps_statistics_of_its_first_columns_only(
    kept: Book, table: TableName
) -> None:
    configuration = on_disk(kept.root, table).metadata().configuration
    first = LAYOUTS[table].statistics

    assert configuration[VERSION_PROPERTY] == str(SCHEMA_VERSION)
    assert configuration["delta.dataSkippingNumIndexedCols"] == str(len(first))
    assert stored_schema(table).names[: len(first)] == list(first)
    assert LAYOUTS[table].key in stored_schema(table).names


def test_vectors_lie_packed_and_are_read_as_lists() -> None:
    stored, declared = stored_schema("trajectories"), declared_schema("trajectories")

    assert [f.name for f in stored if f.type == pa.binary()] == list(VECTORS)
    assert [f.name for f in declared if pa.types.is_list(f.type)] == list(VECTORS)
    assert [f.name for f in stored if f.name not in VECTORS] == [
        f.name for f in declared if f.name not in VECTORS
    ]


def test_creating_a_book_that_is_there_changes_nothing(book: Book, root: Path) -> None:
    before = {name: on_disk(root, name).version() for name in TABLE_NAMES}

    with Book.create(root):
        pass

    assert {name: on_disk(root, name).version() for name in TABLE_NAMES} == before


# -- books that are not read -----------------------------------------------------------------------


def newer(root: Path, table: TableName) -> None:
    on_disk(root, table).alter.set_table_properties(
        {VERSION_PROPERTY: str(SCHEMA_VERSION + 1)}, raise_if_not_exists=False
    )


def with_deletion_vectors(root: Path, table: TableName) -> None:
    on_disk(root, table).alter.set_table_properties({"delta.enableDeletionVectors": "true"})


def with_feature_alone(root: Path, table: TableName) -> None:
    on_disk(root, table).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )


def with_mapped_columns(root: Path, table: TableName) -> None:
    on_disk(root, table).alter.add_feature(
        TableFeatures.ColumnMapping, allow_protocol_versions_increase=True
    )


def with_mapped_columns_of_old(root: Path, table: TableName) -> None:
    """Map columns as writers did before there were features: by a property alone."""
    shutil.rmtree(root / table)
    DeltaTable.create(
        str(root / table),
        stored_schema(table),
        configuration={VERSION_PROPERTY: "1", "delta.columnMapping.mode": "name"},
        raise_if_key_not_exists=False,
    )


Unread = tuple[Callable[[Path, TableName], None], type[Exception], str]
UNREAD: list[Unread] = [
    (newer, BookTooNew, "has schema version 2, this Rollbook knows up to 1: upgrade Rollbook"),
    (with_deletion_vectors, BookUnreadable, "uses deletionVectors"),
    (with_feature_alone, BookUnreadable, "uses deletionVectors"),
    (with_mapped_columns, BookUnreadable, "uses columnMapping"),
]


@pytest.mark.parametrize(
    "case",
    [*UNREAD, (with_mapped_columns_of_old, BookUnreadable, "uses columnMapping")],
    ids=lambda case: case[0].__name__,
)
def test_a_book_that_would_be_read_wrongly_is_not_opened(
    open_book: "OpenBook",
    root: Path,
    case: Unread,
) -> None:
    open_book().close()
    change, error, text = case
    change(root, "samples")

    with pytest.raises(error, match=text):
        Book.open(root)


@pytest.mark.parametrize("case", UNREAD, ids=lambda case: case[0].__name__)
def test_f39_an_open_book_that_is_changed_under_its_reader_is_not_used_any_more(
    book: Book, root: Path, sample: "Make", case: Unread
) -> None:
    change, error, text = case
    book.append([sample(1)])
    change(root, "samples")

    with pytest.raises(error, match=text):
        book.query("SELECT COUNT(*) FROM samples")
    with pytest.raises(error, match=text):
        book.append([sample(2)])
    with pytest.raises(error, match=text):
        book.assemble()


# -- older books -----------------------------------------------------------------------------------

LACKING: dict[TableName, list[str]] = {
    "samples": ["model_fingerprint", "quota_remaining"],
    "trajectories": ["token_versions"],
    "calls": ["error_type"],
    "dispositions": ["figures"],
    "weights": ["publisher"],
}


def make_old(root: Path, lacking: Mapping[TableName, list[str]], *, files: int = 2) -> None:
    """Make tables of a book as a Rollbook before version 1 would have left them."""
    for table, names in lacking.items():
        schema = pa.schema([field for field in stored_schema(table) if field.name not in names])
        rewrite(root, table, schema, files=files)


def rewrite(root: Path, table: TableName, schema: pa.Schema, *, files: int) -> None:
    rows = on_disk(root, table).to_pyarrow_table().select(schema.names).cast(schema)
    shutil.rmtree(root / table)
    DeltaTable.create(
        str(root / table),
        schema,
        configuration={VERSION_PROPERTY: "0", "delta.dataSkippingNumIndexedCols": "2"},
        raise_if_key_not_exists=False,
    )
    for start in range(0, rows.num_rows, max(1, rows.num_rows // files)):
        part = rows.slice(start, max(1, rows.num_rows // files))
        write_deltalake(str(root / table), part, mode="append")


@pytest.fixture
def old_book(
    open_book: "OpenBook", root: Path, sample: "Make", trajectory: "Make", call: "MakeCall"
) -> Book:
    """Return a book with eight samples of 25 turns that was made without some columns."""
    keys = range(8)
    with open_book() as book:
        book.publish(1)
        book.append(
            [sample(key, model_fingerprint="then", quota_remaining=9) for key in keys],
            trajectories=[trajectory(key) for key in keys],
            calls=[call(key, key) for key in keys],
        )
        book.ack(str(book.assemble().batch_id))
    make_old(root, LACKING)
    return open_book()


def test_an_older_book_gets_the_columns_that_it_lacks_when_it_is_opened(
    old_book: Book, root: Path
) -> None:
    old_book.query("SELECT 1 FROM samples")

    for table in LACKING:
        delta = on_disk(root, table)
        names = pa.schema(delta.schema()).names
        assert sorted(names) == sorted(stored_schema(table).names)
        assert delta.metadata().configuration[VERSION_PROPERTY] == str(SCHEMA_VERSION)


def test_f39_rows_from_before_a_column_have_null_in_it_and_every_sum_is_unchanged(
    old_book: Book,
) -> None:
    assert rows_of(
        old_book,
        "SELECT COUNT(*), COUNT(model_fingerprint), COUNT(quota_remaining), SUM(turns),"
        " SUM(env_seconds) FROM samples",
    ) == [(8, 0, 0, 200, 480.0)]
    assert rows_of(old_book, "SELECT COUNT(*), COUNT(error_type) FROM calls") == [(8, 0)]
    assert rows_of(old_book, "SELECT COUNT(*), COUNT(token_versions) FROM trajectories") == [(8, 0)]
    assert rows_of(old_book, "SELECT state, turns, figures FROM batch") == [("trained", 100, None)]


def test_f39_old_and_new_rows_are_read_together(
    old_book: Book, sample: "Make", trajectory: "Make", clock: "FakeClock"
) -> None:
    clock.tick(1)
    versions = [1] * 64
    old_book.append(
        [sample(key, model_fingerprint="now", quota_remaining=5) for key in range(8, 10)],
        trajectories=[trajectory(key, token_versions=versions) for key in range(8, 10)],
    )

    fingerprints = rows_of(
        old_book,
        "SELECT model_fingerprint, COUNT(*), SUM(quota_remaining) FROM samples"
        " GROUP BY model_fingerprint ORDER BY 1 NULLS FIRST",
    )
    assert fingerprints == [(None, 8, None), ("now", 2, 10)]
    made = [old_book.assemble(), old_book.assemble()]
    assert [decided.samples for decided in made] == [4, 0]
    batch = old_book.batch(str(made[0].batch_id)).table(trajectories=True)
    assert batch.column("model_fingerprint").to_pylist() == [None] * 4
    assert batch.column("token_versions").to_pylist() == [None] * 4
    assert [len(tokens) for tokens in batch.column("token_ids").to_pylist()] == [64] * 4


def test_f39_a_batch_of_old_and_new_samples_has_the_vectors_that_each_of_them_has(
    old_book: Book, sample: "Make", trajectory: "Make", clock: "FakeClock"
) -> None:
    old_book.append(
        [sample(key, finished_at=clock() - timedelta(seconds=1)) for key in ("new1", "new2")],
        trajectories=[trajectory(key, token_versions=[1] * 64) for key in ("new1", "new2")],
    )

    batch = old_book.batch(str(old_book.assemble().batch_id)).table(trajectories=True)

    versions = dict(
        zip(*(batch[name].to_pylist() for name in ("sample_id", "token_versions")), strict=True)
    )
    assert versions == {"s4": None, "s5": None, "snew1": [1] * 64, "snew2": [1] * 64}


def test_an_old_row_delivered_again_is_known(
    old_book: Book, sample: "Make", trajectory: "Make", call: "MakeCall"
) -> None:
    again = old_book.append([sample(1)], trajectories=[trajectory(1)], calls=[call(1, 1)])
    more = old_book.append([sample(1, model_fingerprint="now")])

    assert (again.added, again.duplicates, again.refused) == (0, 1, 0)
    assert (more.added, more.duplicates, more.rules) == (0, 0, {"conflict": 1})


def test_an_older_book_is_the_same_after_compaction_and_after_another_restart(
    old_book: Book, open_book: "OpenBook", sample: "Make"
) -> None:
    old_book.append([sample("new", model_fingerprint="now")])
    question = "SELECT * FROM samples ORDER BY sample_id"
    before = old_book.query(question)

    list(old_book.maintain())

    assert old_book.query(question).equals(before)
    assert open_book().query(question).equals(before)


def test_f39_a_field_that_a_list_of_structs_gains_is_null_in_old_rows(
    open_book: "OpenBook", root: Path, sample: "Make"
) -> None:
    split = [{"weight_version": 1, "turns": 20}, {"weight_version": 2, "turns": 5}]
    with open_book() as book:
        broken = sample(2, status="env_error", turns=0, turns_by_version=[])
        book.append([sample(1, turns_by_version=split), broken, sample(3)])
    was = pa.field("turns_by_version", pa.list_(pa.struct([("weight_version", pa.int64())])))
    schema = stored_schema("samples")
    schema = schema.set(schema.get_field_index(was.name), was)
    rewrite(root, "samples", schema, files=3)
    book = open_book()

    old = rows_of(book, "SELECT sample_id, turns_by_version FROM samples ORDER BY 1")
    book.append([sample(4, turns_by_version=split)])
    list(book.maintain())

    lost = [{"weight_version": 1, "turns": None}, {"weight_version": 2, "turns": None}]
    assert old == [("s1", lost), ("s2", []), ("s3", None)]
    assert rows_of(book, "SELECT sample_id, turns_by_version FROM samples ORDER BY 1") == [
        *old,
        ("s4", split),
    ]
    assert rows_of(book, "SELECT SUM(turns) FROM samples") == [(75,)]


def test_f39_six_processes_open_an_older_book_at_once_and_lose_neither_column_nor_row(
    open_book: "OpenBook", root: Path, sample: "Make", start: "Start", together: Together
) -> None:
    lacking = ["model", "image", "model_fingerprint", "quota_remaining", "limit", "rewards"]
    with open_book() as book:
        book.append([sample(key, model="then") for key in range(100, 108)])
    make_old(root, {"samples": lacking, "calls": ["error_type"]})

    writers = [start("append_bare", first=at * 10, count=2, size=2) for at in range(6)]
    results = together(writers)

    assert [sum(line["added"] for line in lines) for lines in results] == [2] * 6
    book = open_book()
    assert rows_of(book, "SELECT COUNT(*), COUNT(model), SUM(turns) FROM samples") == [(20, 0, 500)]
    names = pa.schema(on_disk(root, "samples").schema()).names
    assert sorted(names) == sorted(stored_schema("samples").names)
    configuration = on_disk(root, "samples").metadata().configuration
    assert configuration[VERSION_PROPERTY] == str(SCHEMA_VERSION)
    assert {f"delta.constraints.{name}" for name in LAYOUTS["samples"].checks} <= set(configuration)


def test_rows_without_a_column_are_completed_with_nulls_in_the_wanted_order() -> None:
    rows = pa.table({"b": [1, 2], "extra": [0, 0]})
    schema = pa.schema([("a", pa.list_(pa.int32())), ("b", pa.int64())])

    assert completed(rows, schema).to_pydict() == {"a": [None, None], "b": [1, 2]}


# -- the last fence --------------------------------------------------------------------------------


def stored_rows(book: Book, table: TableName, **changes: Any) -> pa.Table:
    """Return the stored rows of a table, the last of them changed."""
    rows = on_disk(book.root, table).to_pyarrow_table().to_pylist()
    rows[-1] |= changes
    return pa.Table.from_pylist(rows, stored_schema(table))


BAD_ROWS: list[tuple[TableName, Row]] = [
    ("samples", {"turns": -1}),
    ("samples", {"env_seconds": -0.5}),
    ("samples", {"env_seconds": 2_592_001.0}),
    ("samples", {"env_seconds": float("nan")}),
    ("samples", {"env_seconds": float("inf")}),
    ("samples", {"started_at": NOON + MICROSECOND, "finished_at": NOON}),
    ("samples", {"finished_at": None, "started_at": None, "turns": -1}),
    ("calls", {"amount": -1}),
    ("weights", {"weight_version": -1}),
]


@pytest.mark.parametrize(("table", "changes"), BAD_ROWS)
def test_a_bad_row_that_comes_around_the_gate_is_refused_by_the_table_itself(
    kept: Book, table: TableName, changes: Row
) -> None:
    delta = on_disk(kept.root, table)
    version = delta.version()

    with pytest.raises(DeltaError, match="failed validation check"):
        write_deltalake(delta, stored_rows(kept, table, **changes), mode="append")

    assert on_disk(kept.root, table).version() == version


@pytest.mark.parametrize("table", ["samples", "calls"])
def test_what_the_table_refuses_is_told_at_once_and_without_the_content_of_any_row(
    kept: Book, table: TableName
) -> None:
    bad: Row = {"samples": {"turns": -1}, "calls": {"amount": -1}}[table]

    with pytest.raises(BookUnreadable) as refused:
        kept.tables[table].append(stored_rows(kept, table, **bad))

    assert str(refused.value).startswith(f"table '{table}' refused the commit: ")
    assert "1 rows failed validation check" in str(refused.value)
    assert "SECRET" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("table", [name for name in TABLE_NAMES if LAYOUTS[name].checks])
def test_every_check_lets_null_pass_where_the_column_may_be_null(
    kept: Book, tmp_path: Path, table: TableName
) -> None:
    nulls = {f.name: None for f in stored_schema(table) if f.nullable}
    copy = shutil.copytree(f"{kept.root}/{table}", tmp_path / table)
    version = DeltaTable(copy).version()

    write_deltalake(copy, stored_rows(kept, table, **nulls), mode="append")

    assert DeltaTable(copy).version() == version + 1
