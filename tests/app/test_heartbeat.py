"""`rollbook heartbeat`, and what the end of the data does to `rollbook assemble`."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.app.conftest import Call

BEATS = "SELECT producer, in_flight, in_flight_turns, is_exhausted FROM supply ORDER BY producer"
WIDTH = 80


# -- heartbeat -----------------------------------------------------------------------------------


def test_a_beat_is_kept_as_it_was_said(call: "Call", book: Path) -> None:
    ran = call("heartbeat", "pool-a", "--in-flight", "3", "--in-flight-turns", "120")
    last = call("heartbeat", "pool-b", "--in-flight=1", "--exhausted")

    assert (ran.code, last.code) == (0, 0)
    assert ran.out == "pool-a lives: 3 samples in flight, at most 120 turns\n"
    assert last.out == "pool-b lives: 1 sample in flight, no task left to start\n"
    assert call("query", BEATS, "--json").document == [
        {"producer": "pool-a", "in_flight": 3, "in_flight_turns": 120, "is_exhausted": False},
        {"producer": "pool-b", "in_flight": 1, "in_flight_turns": None, "is_exhausted": True},
    ]


def test_json_says_what_was_noted(call: "Call", book: Path) -> None:
    assert call("heartbeat", "a", "--in-flight", "0", "--json").document == {
        "producer": "a",
        "in_flight": 0,
        "in_flight_turns": None,
        "is_exhausted": False,
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Missing argument 'PRODUCER'"),
        (["a"], "Missing option '--in-flight'"),
        (["a", "--in-flight=-1"], f"-1 is not in the range 0<=x<={2**31 - 1}"),
        (["a", f"--in-flight={2**31}"], f"{2**31} is not in the range 0<=x<={2**31 - 1}"),
        (["a", "--in-flight=1.5"], "'1.5' is not a valid integer"),
        (
            ["a", "--in-flight=1", "--in-flight-turns=-1"],
            f"-1 is not in the range 0<=x<={2**63 - 1}",
        ),
        (["a", "--in-flight=1", f"--in-flight-turns={2**63}"], f"{2**63} is not in the range"),
        (["a", "b", "--in-flight=1"], "unexpected extra argument (b)"),
    ],
)
def test_what_is_no_beat_is_named_with_value_and_bound(
    call: "Call", book: Path, words: list[str], says: str
) -> None:
    ran = call("heartbeat", *words)

    assert ran.code == 2
    assert says in ran.err
    assert call("query", BEATS, "--json").document == []


@pytest.mark.parametrize(("name", "bound"), [("", "1"), ("x" * 513, "512")])
def test_a_producer_s_name_has_bounds(call: "Call", book: Path, name: str, bound: str) -> None:
    ran = call("heartbeat", name, "--in-flight=1")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("rollbook: heartbeat of ")
    assert "producer" in ran.err
    assert bound in ran.err
    assert call("query", BEATS, "--json").document == []


# -- assemble ------------------------------------------------------------------------------------


def lines(text: str) -> list[str]:
    """Return the lines of an output, each of which fits a terminal."""
    found = text.splitlines()
    assert max(map(len, found)) <= WIDTH, found
    return found


def settle(root: Path, text: str) -> None:
    """Give the book settings that hold from now on, under which nothing is too old."""
    (root / "rollbook.toml").write_text(f"[discard]\nmax_wait_seconds = 3_000_000_000\n{text}")


def grade(call: "Call", root: Path, grader: str, count: int, reward: int) -> None:
    """Give so many samples a reward."""
    rows = call("query", "SELECT sample_id FROM samples ORDER BY position", "--json").document
    lines = [f"{row['sample_id']},{reward}" for row in rows[:count]]
    table = root.parent / f"{grader}.csv"
    table.write_text("\n".join(["sample_id,reward", *lines]))
    assert call("reward", "--from", table, "--grader", grader).code == 0


@pytest.mark.parametrize("stream", ["", "all", "Train"])
def test_a_stream_that_is_none_is_named_with_those_there_are(
    call: "Call", book: Path, stream: str
) -> None:
    ran = call("assemble", "--stream", stream)

    assert ran.code == 2
    assert f"'{stream}' is not one of 'train', 'replay'" in ran.err


def test_a_pass_is_for_the_stream_that_was_asked_for(call: "Call", graded: Path) -> None:
    ran = call("assemble", "--stream", "replay")
    made = call("assemble", "--stream", "train", "--json").document

    assert lines(ran.out)[0] == "no batch: short by 40 of 40 turns (0 pending)"
    assert made["batch_id"].startswith("train-")


def test_a_partial_batch_says_so_beside_what_would_complete_it(call: "Call", graded: Path) -> None:
    settle(graded, '[batch]\nturns = 1000\n[end]\npolicy = "flush_partial"\n')
    call("heartbeat", "a", "--in-flight=0", "--exhausted")

    ran = call("assemble")

    (made,) = call("query", "SELECT batch_id, is_partial FROM batch", "--json").document
    told = f"batch {made['batch_id']}: partial, 135 of 1,000 turns in 23 samples"
    assert lines(ran.out)[0] == told
    assert made["is_partial"]
    assert call("audit").code == 0


def test_a_full_batch_at_the_end_of_the_data_is_not_partial(call: "Call", graded: Path) -> None:
    settle(graded, '[batch]\nturns = 40\n[end]\npolicy = "flush_partial"\n')
    call("heartbeat", "a", "--in-flight=0", "--exhausted")

    assert lines(call("assemble").out)[0] == "batch train-00000001: 41 turns in 9 samples"


def test_a_batch_that_waits_for_a_least_share_says_so(call: "Call", graded: Path) -> None:
    shares = 'least = { "other/long" = 0.5 }\nleast_wait_seconds = 3_000_000_000\n'
    settle(graded, f"[batch]\nturns = 40\n[shares]\n{shares}")

    first = lines(call("assemble").out)[0]

    assert first == "no batch: a stratum lacks its least share, see rollbook why (135 pending)"


def test_open_incidents_are_told_in_a_line_each_until_they_are_closed(
    call: "Call", graded: Path
) -> None:
    grade(call, graded, "equal", 24, 1)
    blocked = lines(call("assemble").out)
    still_open = call("sql", "incidents", "--param", "open_only=true", "--json").document
    grade(call, graded, "other", 2, 0)

    cured = lines(call("assemble").out)

    assert blocked[0] == "no batch: nothing in it carries a gradient (135 pending)"
    incident = [line.split() for line in blocked if line.startswith("  incident ")]
    assert [(words[1], words[2], words[-1]) for words in incident] == [
        ("no_gradient", "since", "train")
    ]
    assert cured[0].startswith("batch train-")
    assert not [line for line in cured if "incident" in line]
    (row,) = call("sql", "incidents", "--json").document
    assert [found["closed_at"] for found in still_open] == [None]
    assert (row["kind"], row["subject"], row["seconds"] > 0) == ("no_gradient", "train", True)
    assert row["closed_at"] > row["opened_at"]
    assert call("sql", "incidents", "--param", "open_only=true", "--json").document == []
