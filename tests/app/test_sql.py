"""`rollbook sql`: questions by name, their parameters, and the forms of an answer."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rollbook.store.questions import questions

if TYPE_CHECKING:
    from tests.app.conftest import Call

NAMES = [found.name for found in questions()]
# State → samples and turns of the recordings once they are graded.
STATES = [
    {"state": "never_trainable", "reason": "env_error", "samples": 1, "turns": 2},
    {"state": "pending", "reason": None, "samples": 23, "turns": 135},
]


# -- the list ------------------------------------------------------------------------------------


def test_the_list_of_questions_needs_no_book(call: "Call") -> None:
    ran = call("sql")

    assert ran.code == 0
    lines = ran.out.splitlines()[2:]
    assert [line.split()[0] for line in lines] == NAMES
    assert all(line.endswith("?") for line in lines)


def test_json_of_the_list_holds_parameters_and_what_is_returned(call: "Call") -> None:
    listed = {entry.pop("name"): entry for entry in call("sql", "--json").document}

    assert list(listed) == NAMES
    assert all(set(entry) == {"question", "params", "returns"} for entry in listed.values())
    assert listed["report/ledger"]["params"] == {"tenant": "VARCHAR", "task_type": "VARCHAR"}
    assert listed["report/gaps"]["params"] == {}
    assert all(entry["returns"] for entry in listed.values())


def test_the_list_comes_as_csv_and_as_arrow(call: "Call", tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(call("sql", "--csv").out)))
    call("sql", "--arrow", tmp_path / "list.arrow")

    assert [row["name"] for row in rows] == NAMES
    with pa.ipc.open_file(str(tmp_path / "list.arrow")) as file:
        assert file.read_all()["name"].to_pylist() == NAMES


# -- an answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_answered_on_an_empty_book(call: "Call", book: Path, name: str) -> None:
    ran = call("sql", name)

    assert (ran.code, ran.out) == (0, "no rows\n")


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_answered_on_a_book_with_all_kinds_of_rows(
    call: "Call", leased: Path, name: str
) -> None:
    ran = call("sql", name, "--json")

    assert ran.code == 0
    assert isinstance(ran.document, list)


def test_a_question_goes_by_its_bare_name_too(call: "Call", graded: Path) -> None:
    """Two folders have a `ledger`: the report comes first."""
    bare, full = call("sql", "ledger"), call("sql", "report/ledger")

    assert bare.out == full.out


def test_a_parameter_that_is_no_time_is_told_without_the_text_of_the_statement(
    call: "Call", graded: Path
) -> None:
    ran = call("sql", "mix", "--param", "from_time=abc")

    assert ran.code == 1
    assert ran.err.startswith("rollbook: mix: Conversion Error: ")
    assert '"abc"' in ran.err
    assert "LINE" not in ran.err


def test_a_table_is_aligned_and_unknown_is_a_dash(call: "Call", graded: Path) -> None:
    assert call("sql", "states").out.splitlines() == [
        "state            reason     samples  turns",
        "───────────────  ─────────  ───────  ─────",
        "never_trainable  env_error        1      2",
        "pending          –               23    135",
    ]


def test_json_is_a_list_of_rows(call: "Call", graded: Path) -> None:
    assert call("sql", "states", "--json").document == STATES


def test_csv_leaves_what_is_unknown_empty(call: "Call", graded: Path) -> None:
    assert call("sql", "states", "--csv").out == (
        "state,reason,samples,turns\nnever_trainable,env_error,1,2\npending,,23,135\n"
    )


def test_arrow_is_a_file_with_the_types_of_the_answer(
    call: "Call", graded: Path, tmp_path: Path
) -> None:
    ran = call("sql", "states", "--arrow", tmp_path / "states.arrow")

    assert (ran.code, ran.out, ran.err) == (0, "", f"2 rows in {tmp_path / 'states.arrow'}\n")
    with pa.ipc.open_file(str(tmp_path / "states.arrow")) as file:
        rows = file.read_all()
    assert rows.to_pylist() == STATES
    assert rows.schema.field("samples").type == pa.int64()


def test_an_answer_without_rows_still_has_its_columns(
    call: "Call", book: Path, tmp_path: Path
) -> None:
    call("sql", "states", "--arrow", tmp_path / "states.arrow")

    assert call("sql", "states", "--json").document == []
    assert call("sql", "states", "--csv").out == "state,reason,samples,turns\n"
    with pa.ipc.open_file(str(tmp_path / "states.arrow")) as file:
        assert file.schema.names == ["state", "reason", "samples", "turns"]


def test_parameters_narrow_an_answer(call: "Call", graded: Path, recorded_files: Path) -> None:
    call("import", recorded_files / "verifiers" / "legacy", "--tenant", "other")

    def samples(*params: str) -> int:
        words = [word for param in params for word in ("--param", param)]
        rows = call("sql", "ledger", *words, "--json").document
        return sum(int(row["samples"]) for row in rows)

    assert samples() == 39
    assert samples("tenant=acme") == 24
    assert samples("tenant=other") == 15
    assert samples("tenant=acme", "task_type=mini-swe-agent") == 24
    assert samples("tenant=acme", "task_type=other") == 0
    assert samples("tenant=a=b") == 0
    assert samples("tenant=' OR 1=1 --") == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["none"], 1, "there is no question 'none'; there are: report/batches, "),
        (["assemble/funnel"], 1, "there is no question 'assemble/funnel'"),
        (["../secret"], 1, "there is no question '../secret'"),
        (["ledger", "--param", "tenant"], 2, "--param takes KEY=VALUE, not 'tenant'"),
        (
            ["ledger", "--param", "owner=me"],
            1,
            "report/ledger takes no parameter 'owner'; it takes: tenant VARCHAR, task_type VARCHAR",
        ),
        (["gaps", "--param", "x=1"], 1, "takes no parameter 'x'; it takes: none"),
        (["by_month", "--param", "zone=Mars/Olympus"], 1, "Mars/Olympus"),
        (["ledger", "--param", "tenant=\udcff"], 1, "rollbook: "),
        (["states", "--csv", "--json"], 2, "one of --json, --csv and --arrow at a time"),
        (["states", "--csv", "--arrow=x"], 2, "one of --json, --csv and --arrow at a time"),
        (["states", "--arrow=absent/x"], 1, "absent/x"),
        (["states", "--arrow=."], 2, "is a directory"),
        (["states", "more"], 2, "unexpected extra argument (more)"),
    ],
)
def test_what_cannot_be_answered_is_named(
    call: "Call", graded: Path, words: list[str], code: int, says: str
) -> None:
    ran = call("sql", *words)

    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
