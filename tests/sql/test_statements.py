"""Every statement keeps its own header: one question, its parameters, exactly its columns.

They are run on a book that is empty, where a statement that forgets a cast or counts on a row
shows it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from rollbook.sql import Statement, statements
from rollbook.store.assembly import READ_TABLES, mount_open, show_moment
from rollbook.store.book import TABLE_NAMES, Book
from rollbook.store.engine import VIEWS, Engine
from rollbook.store.passes import GROUPED, SHARED, SINGLE, run_steps
from rollbook.store.schema import TableName, stored_schema
from rollbook.store.settings import Settings

if TYPE_CHECKING:
    from rollbook.store.delta import Snapshot

ROOT = Path(__file__).resolve().parents[2]
STEPS = {*SINGLE, *GROUPED, *SHARED}
# Read after the steps of a pass, beside what stands in their folder; and what is not.
OF_A_PASS = {"why/held"}
OF_ALL_TABLES = {"assemble/has_ended"}
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = [pytest.param(found, id=found.name) for found in statements()]

# How a header spells a type → what a reader gets, and a value to ask with.
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "BIGINT": (pa.int64(), 1),
    "UBIGINT": (pa.uint64(), 1),
    "INTEGER": (pa.int32(), 1),
    "DOUBLE": (pa.float64(), 1.0),
    "BOOLEAN": (pa.bool_(), True),
    "VARCHAR": (pa.string(), "x"),
    "VARCHAR[]": (pa.list_(pa.string()), ["age_versions", "wait_seconds"]),
    "DATE": (pa.date32(), NOW.date()),
    "TIMESTAMPTZ": (pa.timestamp("us", "UTC"), NOW),
}
PARAMETERS = {"zone": "Europe/Berlin"}

# What only DuckDB understands, or each engine in its own way.
NOT_PORTABLE = re.compile(
    r"::|//|\bQUALIFY\b|\bGROUP BY ALL\b|\bORDER BY ALL\b|\bEXCLUDE\b|\bPIVOT\b|\bASOF\b"
    r"|\bunnest\b|\bgenerate_series\b|\brange\(|\bepoch_us\b|\blambda\b|\blist_\w+\(|\bconcat\(",
    re.IGNORECASE,
)


def body(found: Statement) -> str:
    """Return the text without its comments and without what stands between quotes."""
    lines = [line for line in found.text.splitlines() if not line.lstrip().startswith("--")]
    return re.sub(r"'[^']*'", "''", "\n".join(lines))


def returned(found: Statement) -> dict[str, pa.DataType | None]:
    """Return the columns that the header promises, by type; of another table's only the names."""
    columns: dict[str, pa.DataType | None] = {}
    for table in re.findall(r"the columns of (\w+)", found.returns):
        is_step = table not in TABLE_NAMES
        columns |= columns_of_step(table) if is_step else dict.fromkeys(stored_schema(table).names)
    for name in re.findall(r"without (\w+)", found.returns):
        del columns[name]
    if "the sample's columns" in found.returns:
        columns |= dict.fromkeys(stored_schema("samples").names)
    spelled = re.sub(r"\([^()]*\)", "", found.returns)
    for part in spelled.split(","):
        name, _, kind = part.strip().removeprefix("and ").rpartition(" ")
        if kind in TYPES and name.isidentifier():
            columns[name] = TYPES[kind][0]
    return columns


def columns_of_step(table: str) -> dict[str, pa.DataType | None]:
    """Return the columns of a step's table; some steps have two ways to make it."""
    made = next(found for found in statements("assemble") if left(found) == table)
    return returned(made)


def left(found: Statement) -> str | None:
    """Return the name of the table or view that a step of a pass leaves."""
    made = re.match(r"CREATE OR REPLACE TEMP (?:TABLE|VIEW) (\w+) AS", body(found).strip())
    return made[1] if made else None


def asked(found: Statement) -> dict[str, Any]:
    return {name: PARAMETERS.get(name, TYPES[kind][1]) for name, kind in found.params.items()}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    with Book.create(tmp_path_factory.mktemp("sql") / "book", clock=lambda: NOW) as made:
        yield made


@pytest.fixture(scope="module")
def engine(book: Book) -> Iterator[Engine]:
    """Return what named questions are run on: all tables and views, and the moment."""
    made = Engine()
    for name, table in book.tables.items():
        made.mount(name, table.snapshot())
    made.mount_as("heavy", "calls", book.tables["calls"].snapshot())
    show_moment(made, NOW, None)
    made.create_views()
    for side in ("noted", "derived"):
        made.show(side, made.run("why/noted", {"sequence": 1}))
    yield made
    made.close()


@pytest.fixture(scope="module", params=[(8, None), (None, 8)], ids=["single", "grouped"])
def assembler(book: Book, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Return what the assembler's statements are run on: after all its steps, in both ways."""
    made = Engine()
    snapshots: dict[TableName, Snapshot] = {
        name: book.tables[name].snapshot() for name in READ_TABLES
    }
    moment = mount_open(made, snapshots, NOW)
    for size in request.param:
        settings = Settings.model_validate({"groups": {"size": size}})
        run_steps(made, moment, settings, "train", is_partial_wanted=False)
    yield made
    made.close()


# -- the text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", ALL)
def test_a_header_asks_a_question_and_says_what_is_returned(found: Statement) -> None:
    first = found.text.splitlines()[0]

    assert first.startswith("-- ")
    assert "?" in found.question
    assert found.question.endswith(("?", "."))
    assert returned(found), "the header names no column"
    assert found.dialect in ("any", "duckdb")
    assert set(found.params.values()) <= set(TYPES)


@pytest.mark.parametrize("found", ALL)
def test_every_parameter_is_declared_and_every_declared_one_is_used(found: Statement) -> None:
    assert set(re.findall(r"\$(\w+)", body(found))) == set(found.params)


@pytest.mark.parametrize("found", ALL)
def test_a_file_holds_one_statement_that_changes_nothing_that_is_stored(found: Statement) -> None:
    parsed = duckdb.extract_statements(found.text)

    assert len(parsed) == 1
    is_step = left(found) is not None
    assert parsed[0].type == (
        duckdb.StatementType.CREATE if is_step else duckdb.StatementType.SELECT
    )


@pytest.mark.parametrize("found", ALL)
def test_what_does_not_say_that_it_needs_duckdb_is_portable(found: Statement) -> None:
    if found.dialect == "any":
        assert NOT_PORTABLE.findall(body(found)) == []


@pytest.mark.parametrize("found", ALL)
def test_a_time_is_cut_only_in_a_zone_that_is_named(found: Statement) -> None:
    cuts = re.findall(r"date_trunc\([^)]*\)?", body(found), re.IGNORECASE)

    assert all("AT TIME ZONE" in cut for cut in cuts)
    assert not re.search(r"\bnow\(\)|\bcurrent_(date|timestamp)\b", body(found), re.IGNORECASE)


# -- the answer -----------------------------------------------------------------------------------


def test_the_views_are_the_files_and_each_uses_only_those_before_it() -> None:
    names = [found.name.removeprefix("views/") for found in statements("views")]

    assert sorted(VIEWS) == names
    for place, view in enumerate(VIEWS):
        text = body(next(f for f in statements("views") if f.name == f"views/{view}"))
        used = set(re.findall(r"(?:FROM|JOIN) (\w+)", text))
        assert not used & set(VIEWS[place:]), view


def test_the_steps_are_the_statements_that_leave_a_table_of_their_own_name() -> None:
    steps = {found.name: left(found) for found in statements() if left(found)}

    assert set(steps) == {f"assemble/{step}" for step in STEPS}
    for name, table in steps.items():
        own = name.removeprefix("assemble/")
        assert table == own.removesuffix("_single").removesuffix("_grouped")


@pytest.mark.parametrize("steps", [(*SINGLE, *SHARED), (*GROUPED, *SHARED)])
def test_each_step_uses_only_the_steps_before_it(steps: tuple[str, ...]) -> None:
    found = {step: next(f for f in statements() if f.name == f"assemble/{step}") for step in steps}
    tables = [left(found[step]) for step in steps]

    for place, step in enumerate(steps):
        used = set(re.findall(r"(?:FROM|JOIN) (\w+)", body(found[step])))
        assert not used & set(tables[place:]), step


@pytest.mark.parametrize("found", ALL)
def test_on_an_empty_book_a_statement_returns_its_columns_and_no_state_of_anything(
    engine: Engine, assembler: Engine, found: Statement
) -> None:
    is_of_a_pass = found.name.startswith("assemble/") and found.name not in OF_ALL_TABLES
    used = assembler if is_of_a_pass or found.name in OF_A_PASS else engine
    if table := left(found):
        answer = used.query(f"SELECT * FROM {table}")  # noqa: S608 - a step's own name
    else:
        answer = used.run(found, asked(found))

    promised = returned(found)
    assert answer.column_names == list(promised)
    for field in answer.schema:
        assert promised[field.name] in (None, field.type), field.name


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_can_be_queried_by_its_name(book: Book, view: str) -> None:
    answer = book.query(f"SELECT * FROM {view}")  # noqa: S608 - a view's own name

    assert answer.num_rows == 0


@pytest.mark.parametrize(
    "found", [pytest.param(found, id=found.name) for found in statements("report")]
)
def test_a_report_can_be_asked_without_any_parameter(book: Book, found: Statement) -> None:
    assert book.sql(found.name).num_rows == 0
    assert book.sql(found.name.partition("/")[2]).num_rows == 0


def test_the_steps_stand_in_the_document_in_their_order_each_with_its_question() -> None:
    document = (ROOT / "docs" / "batches.md").read_text()
    told = re.findall(r"^\| `(\w+)` \| (.*) \|$", document, re.MULTILINE)

    asked_by = {
        step: next(f for f in statements() if f.name == f"assemble/{step}").question
        for step in (*SINGLE, *GROUPED[1:], *SHARED)
    }
    assert [step for step, _ in told] == list(asked_by)
    for step, question in told:
        assert question in asked_by[step], step
