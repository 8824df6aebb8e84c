"""`rollbook audit` and `rollbook accept`: what they print, and when they fail."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollbook.app.commands.accept import lines
from rollbook.ledger import Criterion, Figure, rules
from rollbook.store import Book

if TYPE_CHECKING:
    from tests.app.conftest import Call


@pytest.fixture
def trained(leased: Path, call: "Call") -> Path:
    """Return the book of the recordings with its first batch trained."""
    assert call("ack", "train-00000001").code == 0
    return leased


@pytest.fixture
def damaged(trained: Path) -> Path:
    """Return that book with one of its samples stored once more."""
    with Book.open(trained) as book:
        samples = book.tables["samples"]
        samples.append(book.query("SELECT * FROM samples ORDER BY position LIMIT 1"))
    return trained


# -- audit ---------------------------------------------------------------------------------------


def test_a_sound_book_is_audited_in_one_line(call: "Call", trained: Path) -> None:
    ran = call("audit")

    count = len(rules())
    assert (ran.code, ran.out) == (0, f"{count} of {count} rules held, no offence\n")


def test_offences_are_listed_and_the_exit_code_says_so(call: "Call", damaged: Path) -> None:
    ran = call("audit")

    rows = [line.split()[0] for line in ran.out.splitlines()[2:-1]]
    assert ran.code == 1
    assert {"duplicate_sample", "duplicate_position"} <= set(rows)
    assert ran.out.splitlines()[-1].endswith(f"{len(rows)} offences")


def test_json_holds_every_offence(call: "Call", damaged: Path) -> None:
    ran = call("audit", "--json")

    offences = ran.document["offences"]
    broken = {offence["rule"] for offence in offences}
    assert ran.code == 1
    assert ran.document["rules"] == len(rules())
    assert ran.document["held"] == len(rules()) - len(broken)
    assert all(set(offence) == {"rule", "subject", "detail"} for offence in offences)


def test_an_empty_book_is_not_at_fault(call: "Call", book: Path) -> None:
    assert call("audit").code == 0


# -- accept --------------------------------------------------------------------------------------


def test_a_sound_book_is_accepted_with_the_figures_behind_each(call: "Call", trained: Path) -> None:
    ran = call("accept")

    heads = [line.split()[:2] for line in ran.out.splitlines() if line[:1].isdigit()]
    assert ran.code == 0
    assert heads == [[str(nth), "pass"] for nth in range(1, 5)]
    assert "trained_batches" in ran.out
    assert "✗" not in ran.out


def test_a_criterion_is_folded_to_a_narrow_terminal() -> None:
    text = "a batch is complete by turns, and its truncated share stays inside the set line"
    criterion = Criterion("complete_by_turns", text, "pass", (Figure("batches", 1, least=1),))

    told = lines(2, criterion, 60)

    assert told == [
        "2  pass     a batch is complete by turns, and its truncated",
        "            share stays inside the set line",
        "   batches  1  at least 1",
    ]


def test_a_book_without_a_trained_batch_is_no_data_and_not_a_pass(
    call: "Call", leased: Path
) -> None:
    ran = call("accept", "--json")

    assert ran.code == 1
    assert [found["status"] for found in ran.document] == ["no_data"] * 4


def test_a_damaged_book_fails_and_the_broken_bound_is_marked(call: "Call", damaged: Path) -> None:
    ran = call("accept")

    marked = [line.split()[0] for line in ran.out.splitlines() if line.endswith("✗")]
    assert ran.code == 1
    assert ran.out.startswith("1  fail ")
    assert marked[:2] == ["duplicate_sample", "duplicate_position"]


def test_json_holds_criteria_with_figures_and_bounds(call: "Call", trained: Path) -> None:
    first = call("accept", "--json").document[0]

    assert set(first) == {"name", "text", "status", "figures"}
    assert (first["name"], first["status"]) == ("traceable", "pass")
    assert first["figures"][0]["name"] == "trained_samples"
    assert first["figures"][0]["least"] == 1
