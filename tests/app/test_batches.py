"""`assemble`, `read`, `ack` and `release`: the life of a batch on the command line."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rollbook.store.schema import declared_schema

if TYPE_CHECKING:
    from tests.app.conftest import Call

FIRST = "train-00000001"


def states(call: "Call") -> dict[str, int]:
    """Return the samples by state."""
    return {row["state"]: row["samples"] for row in call("sql", "states", "--json").document}


def arrow(path: Path) -> pa.Table:
    """Return the rows of an Arrow file."""
    with pa.ipc.open_file(str(path)) as file:
        return file.read_all()


@pytest.fixture
def batch(leased: Path) -> str:
    """Return the id of a batch of 41 turns in 9 samples."""
    return FIRST


# -- assemble ------------------------------------------------------------------------------------


def test_a_pass_without_samples_names_the_missing_turns(call: "Call", book: Path) -> None:
    ran = call("assemble")

    assert ran.code == 0
    assert ran.out == "no batch: short by 4,096 of 4,096 turns (0 pending)\n"


def test_a_pass_names_what_is_held_back_and_why(call: "Call", ungraded: Path) -> None:
    first, *held = call("assemble").out.splitlines()

    assert first == "no batch: short by 40 of 40 turns (0 pending)"
    assert [line.split() for line in held] == [
        ["held", "1", "sample", "2", "turns", "never_trainable"],
        ["waiting", "23", "samples", "135", "turns", "awaiting_reward"],
    ]


def test_a_reason_is_told_once_however_many_task_types_it_met(
    call: "Call", ungraded: Path, recorded_files: Path
) -> None:
    call("import", recorded_files / "verifiers" / "legacy", "--tenant", "other")

    held = [line.split() for line in call("assemble").out.splitlines()[1:]]

    assert len({words[-1] for words in held}) == len(held)
    assert len(call("query", "SELECT DISTINCT task_type FROM samples", "--json").document) > 1


def test_a_pass_names_equal_rewards_as_what_keeps_the_batch(
    call: "Call", graded: Path, tmp_path: Path
) -> None:
    ids = call("query", "SELECT sample_id FROM samples", "--json").document
    table = tmp_path / "equal.csv"
    table.write_text("sample_id,reward\n" + "".join(f"{row['sample_id']},1\n" for row in ids))
    call("reward", "--from", table, "--grader", "again")

    ran = call("assemble")

    assert ran.out.startswith("no batch: nothing in it carries a gradient (135 pending)\n")


def test_a_pass_makes_a_batch_when_the_turns_suffice(call: "Call", graded: Path) -> None:
    ran = call("assemble", "--learner", "trainer-0")

    assert ran.code == 0
    assert ran.out.startswith(f"batch {FIRST}: 41 turns in 9 samples\n")
    assert states(call) == {"assigned": 9, "never_trainable": 1, "pending": 14}


def test_a_pass_names_what_it_discarded(call: "Call", graded: Path) -> None:
    call("assemble")
    call("publish", "3")

    ran = call("assemble")

    lines = [line.split() for line in ran.out.splitlines()]
    assert ["discarded", "2", "samples", "18", "turns", "age_versions"] in lines


def test_json_holds_the_whole_pass(call: "Call", graded: Path) -> None:
    made = call("assemble", "--json").document

    funnel = made.pop("funnel")
    of_type = {"task_type": "mini-swe-agent", "samples": 9, "turns": 41}
    assert {"step": "assigned", "reason": "assigned", **of_type} in funnel
    assert made == {
        "batch_id": FIRST,
        "target_turns": 40,
        "is_redelivered": False,
        "turns": 41,
        "samples": 9,
        "pending_turns": 135,
        "missing_turns": 0,
        "discarded": 0,
        "dead_streak": 1,
        "dead_reasons": "env_error × 1",
        "blocker": None,
        "is_partial": False,
    }


def test_json_of_a_pass_without_a_batch_says_how_many_turns_are_missing(
    call: "Call", ungraded: Path
) -> None:
    made = call("assemble", "--json").document

    assert made["batch_id"] is None
    assert made["missing_turns"] == 40


def test_assemble_takes_no_argument(call: "Call", book: Path) -> None:
    ran = call("assemble", FIRST)

    assert ran.code == 2
    assert f"unexpected extra argument ({FIRST})" in ran.err


# -- read ----------------------------------------------------------------------------------------


def test_a_batch_is_written_as_an_arrow_file(call: "Call", batch: str, tmp_path: Path) -> None:
    out = tmp_path / "batch.arrow"

    ran = call("read", batch, "--out", out)

    rows = arrow(out)
    assert (ran.code, ran.out) == (0, f"9 samples of batch {batch} in {out}\n")
    assert rows.num_rows == 9
    assert set(declared_schema("samples").names) <= set(rows.column_names)
    assert sum(rows["turns"].to_pylist()) == 41
    assert rows["position"].to_pylist() == sorted(rows["position"].to_pylist())
    assert None not in rows["reward"].to_pylist()
    assert "messages" not in rows.column_names


def test_trajectories_come_when_asked_for(call: "Call", batch: str, tmp_path: Path) -> None:
    out = tmp_path / "batch.arrow"

    ran = call("read", batch, "--out", out, "--trajectories", "--json")

    rows = arrow(out)
    assert ran.document == {"batch_id": batch, "samples": 9, "out": str(out)}
    assert all(json.loads(text) for text in rows["messages"].to_pylist())
    assert {"token_ids", "loss_mask", "behaviour_logprobs"} <= set(rows.column_names)


def test_columns_come_in_the_order_asked_for(call: "Call", batch: str, tmp_path: Path) -> None:
    out = tmp_path / "batch.arrow"

    call("read", batch, "--out", out, "--columns", "turns, task_id")

    assert arrow(out).column_names == ["turns", "task_id"]


def test_reading_again_gives_the_same_bytes(call: "Call", batch: str, tmp_path: Path) -> None:
    for name in ("first", "again"):
        call("read", batch, "--out", tmp_path / name, "--trajectories")

    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("truns", "a batch has no column 'truns'; it has: "),
        ("messages", "a batch has no column 'messages'; it has: "),
        ("", "a batch has no column ''; it has: "),
        ("turns,,task_id", "a batch has no column ''; it has: "),
    ],
)
def test_a_column_that_is_not_there_is_named_with_all_there_are(
    call: "Call", batch: str, tmp_path: Path, columns: str, says: str
) -> None:
    ran = call("read", batch, "--out", tmp_path / "out", "--columns", columns)

    assert ran.code == 1
    assert ran.err.startswith(f"rollbook: {says}")
    assert "weight_version" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_named(call: "Call", batch: str, tmp_path: Path) -> None:
    out = tmp_path / "absent" / "batch.arrow"

    ran = call("read", batch, "--out", out)
    folder = call("read", batch, "--out", tmp_path)

    assert (ran.code, folder.code) == (1, 2)
    assert str(out) in ran.err
    assert "is a directory" in folder.err


# -- ack -----------------------------------------------------------------------------------------


def test_a_batch_is_trained_once(call: "Call", batch: str) -> None:
    first = call("ack", batch, "--figures", '{"clipped_share": 0.25}')
    again = call("ack", batch, "--figures", '{"clipped_share": 0.5}')

    kept = call("query", "SELECT figures FROM batch", "--json").document
    assert (first.code, again.code) == (0, 0)
    assert first.out == f"batch {batch} trained: 9 samples\n"
    assert again.out == f"batch {batch} was marked as trained before: 9 samples\n"
    assert [json.loads(row["figures"]) for row in kept] == [{"clipped_share": 0.25}]
    assert states(call)["trained"] == 9


def test_json_of_an_ack_tells_whether_it_was_the_first(call: "Call", batch: str) -> None:
    first, again = (call("ack", batch, "--json").document for _ in range(2))

    assert first == {"batch_id": batch, "samples": 9, "is_first": True}
    assert again == {"batch_id": batch, "samples": 9, "is_first": False}


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ("much", "--figures is not JSON: Expecting value"),
        ("[1]", "--figures must be a JSON object, it is '[1]'"),
        ("1", "--figures must be a JSON object, it is '1'"),
        ('{"loss": NaN}', "--figures is not JSON: "),
        ('{"loss": 1e999}', "--figures is not JSON: "),
    ],
)
def test_figures_that_are_no_json_object_are_wrong_usage(
    call: "Call", batch: str, figures: str, says: str
) -> None:
    ran = call("ack", batch, "--figures", figures)

    assert ran.code == 2
    assert says in ran.err
    assert "trained" not in states(call)


# -- release -------------------------------------------------------------------------------------


def test_released_samples_are_pending_again(call: "Call", batch: str) -> None:
    ran = call("release", batch)

    assert (ran.code, ran.out) == (0, f"batch {batch}: 9 samples back in the pool\n")
    assert states(call) == {"never_trainable": 1, "pending": 23}


def test_json_of_a_release_counts_the_samples(call: "Call", batch: str) -> None:
    assert call("release", batch, "--json").document == {"batch_id": batch, "released": 9}


def test_a_trained_batch_is_not_released(call: "Call", batch: str) -> None:
    call("ack", batch)

    ran = call("release", batch)

    assert ran.code == 1
    assert ran.err.startswith(f"rollbook: batch {batch} was trained")
    assert states(call)["trained"] == 9


# -- all three -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["read", "ack", "release"])
@pytest.mark.parametrize("name", ["train-00000002", ""])
def test_a_batch_that_is_not_there_is_named(
    call: "Call", leased: Path, tmp_path: Path, command: str, name: str
) -> None:
    out = tmp_path / "out.arrow"
    words = ["--out", str(out)] if command == "read" else []

    ran = call(command, name, *words)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"rollbook: there is no batch {name!r}\n"
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["read", "--out=x"], "Missing argument 'BATCH'"),
        (["read", "b"], "Missing option '--out'"),
        (["ack"], "Missing argument 'BATCH'"),
        (["release"], "Missing argument 'BATCH'"),
        (["release", "a", "b"], "unexpected extra argument (b)"),
    ],
)
def test_a_batch_must_be_named(call: "Call", book: Path, words: list[str], says: str) -> None:
    ran = call(*words)

    assert ran.code == 2
    assert says in ran.err


def test_the_life_of_all_batches_adds_up(call: "Call", graded: Path, tmp_path: Path) -> None:
    """Every sample ends in one batch at most; what is left is pending, held or discarded."""
    seen: list[Any] = []
    while (made := call("assemble", "--learner", "t", "--json").document)["batch_id"]:
        out = tmp_path / "batch.arrow"
        call("read", made["batch_id"], "--out", out, "--columns", "sample_id")
        call("ack", made["batch_id"])
        seen += arrow(out)["sample_id"].to_pylist()

    assert len(seen) == len(set(seen)) == states(call)["trained"]
    assert sum(states(call).values()) == 24
    assert made["pending_turns"] < 40
