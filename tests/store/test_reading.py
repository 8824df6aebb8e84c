"""A learner reads a batch as Arrow: bounded, projected, typed, with trajectories beside it."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pytest

from rollbook.store.batch import Batch
from rollbook.store.book import Book
from rollbook.store.schema import declared_schema
from rollbook.validators.errors import BookMissing, Refused, Unknown

if TYPE_CHECKING:
    from pathlib import Path

    from tests.store.conftest import FakeClock, Make, OpenBook

COUNT = 10


@pytest.fixture
def made(book: Book, sample: "Make", trajectory: "Make") -> Batch:
    """Return a batch over three appends in which every third sample has no trajectory."""
    for part in (range(5, 8), range(5), range(8, COUNT)):
        book.append(
            [sample(key, turns=10, reward=float(key)) for key in part],
            trajectories=[trajectory(key) for key in part if key % 3],
        )
    return book.batch(str(book.assemble().batch_id))


def keys(rows: pa.Table | pa.RecordBatch) -> list[int]:
    """Return the keys of some rows, in their order."""
    return [int(sample_id[1:]) for sample_id in rows.column("sample_id").to_pylist()]


@pytest.mark.parametrize("max_rows", [1, 3, 10, 64])
def test_record_batches_are_bounded_and_complete(made: Batch, max_rows: int) -> None:
    parts = list(made.reader(["sample_id"], max_rows=max_rows))

    assert max(part.num_rows for part in parts) == min(max_rows, COUNT)
    assert sorted(key for part in parts for key in keys(part)) == list(range(COUNT))


def test_every_column_comes_in_its_declared_type_and_in_order_of_position(made: Batch) -> None:
    table = made.table(trajectories=True)

    heavy = [field for field in declared_schema("trajectories") if field.name != "position"]
    for field in (*declared_schema("samples"), *heavy):
        assert table.schema.field(field.name).type == field.type, field.name
    positions = table.column("position").to_pylist()
    assert positions == sorted(positions)


def test_only_the_columns_that_were_asked_for_come_and_in_that_order(made: Batch) -> None:
    table = made.table(["reward", "sample_id", "ordinal"])

    assert table.column_names == ["reward", "sample_id", "ordinal"]
    assert table.column("reward").to_pylist() == [float(key) for key in keys(table)]
    assert sorted(table.column("ordinal").to_pylist()) == list(range(COUNT))


@pytest.mark.parametrize("max_rows", [1, 4, 64])
def test_trajectories_stand_beside_their_samples_and_are_null_where_there_is_none(
    made: Batch, trajectory: "Make", max_rows: int
) -> None:
    names = ["sample_id", "messages", "token_ids", "behaviour_logprobs", "token_versions"]

    table = made.reader(names, trajectories=True, max_rows=max_rows).read_all()

    for key, row in zip(keys(table), table.to_pylist(), strict=True):
        wanted = trajectory(key) if key % 3 else {}
        for name in names[1:]:
            assert row[name] == wanted.get(name), (key, name)


def test_a_batch_without_any_trajectory_reads_as_nulls(book: Book, sample: "Make") -> None:
    book.append([sample(key) for key in range(4)])

    table = book.batch(str(book.assemble().batch_id)).table(["messages"], trajectories=True)

    assert table.column("messages").to_pylist() == [None] * 4


@pytest.mark.parametrize(
    "ask",
    [
        lambda batch: batch.reader(["sample_id", "rewrad"]),
        lambda batch: batch.table(["messages"]),
        lambda batch: batch.schema(["rewrad"]),
    ],
)
def test_a_column_that_is_not_there_is_named_before_anything_is_read(
    made: Batch, ask: Callable[[Batch], object]
) -> None:
    with pytest.raises(Unknown, match=r"no column '(rewrad|messages)'; it has: .*reward"):
        ask(made)


def test_a_batch_reads_the_same_in_polars(made: Batch) -> None:
    frame = made.polars(["sample_id", "reward"])

    assert isinstance(frame, pl.DataFrame)
    assert (
        frame.to_arrow().column("reward").to_pylist()
        == made.table(["reward"]).column("reward").to_pylist()
    )


def test_the_reward_in_a_batch_is_the_one_that_held_when_it_was_decided(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=None, turns=50), sample(2, reward=1.0, turns=50)])
    grading = {"sample_id": "s1", "grader": "g"}
    book.reward([grading | {"reward": 0.25, "rewarded_at": clock.now}])
    batch_id = str(book.assemble().batch_id)
    clock.tick(1)
    book.reward([grading | {"reward": 0.75, "rewarded_at": clock.now}])

    table = book.batch(batch_id).table(["reward"])

    assert table.column("reward").to_pylist() == [0.25, 1.0]
    assert book.query("SELECT reward FROM rewards ORDER BY 1").column(0).to_pylist() == [0.25, 0.75]


def test_a_batch_reads_the_same_after_compaction_and_from_another_handle(
    made: Batch, book: Book, open_book: "OpenBook"
) -> None:
    before = made.table(trajectories=True)
    list(book.maintain())

    again = made.table(trajectories=True)
    elsewhere = open_book().batch(made.batch_id).table(trajectories=True)

    assert before.equals(again)
    assert before.equals(elsewhere)


def test_a_reader_goes_on_beside_a_compaction(made: Batch, book: Book) -> None:
    before = made.table(["sample_id", "messages"], trajectories=True)
    reader = made.reader(["sample_id", "messages"], trajectories=True, max_rows=1)
    first = [reader.read_next_batch()]

    list(book.maintain())

    assert pa.Table.from_batches([*first, *reader]).equals(before.combine_chunks())


def test_empty_vectors_and_absent_vectors_stay_apart(
    book: Book, sample: "Make", trajectory: "Make"
) -> None:
    book.append(
        [sample(key) for key in range(4)],
        trajectories=[
            trajectory(0, token_ids=[], loss_mask=[], behaviour_logprobs=[]),
            trajectory(1, token_ids=None, loss_mask=None, behaviour_logprobs=None),
            trajectory(2, token_ids=[2**31 - 1], loss_mask=[True], behaviour_logprobs=[-1e30]),
        ],
    )

    table = book.batch(str(book.assemble().batch_id)).table(
        ["sample_id", "token_ids", "loss_mask"], trajectories=True
    )

    assert {
        row["sample_id"]: (row["token_ids"], row["loss_mask"]) for row in table.to_pylist()
    } == {
        "s0": ([], []),
        "s1": (None, None),
        "s2": ([2**31 - 1], [1]),
        "s3": (None, None),
    }


# -- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE samples",
        "CREATE TABLE mine AS SELECT 1",
        "SELECT 1; SELECT 2",
        "COPY samples TO 'out.csv'",
        "not sql",
        "",
    ],
)
def test_a_query_may_only_read(book: Book, text: str) -> None:
    with pytest.raises(Refused):
        book.query(text)


def test_a_question_that_is_not_there_is_refused_with_those_that_are(book: Book) -> None:
    with pytest.raises(Unknown, match=r"there are: .*ledger"):
        book.sql("legder")


def test_a_parameter_that_a_question_does_not_take_is_named(book: Book) -> None:
    with pytest.raises(Unknown, match="no parameter 'zoen'"):
        book.sql("report/by_month", zoen="UTC")


def test_a_book_that_is_not_there_is_missing(tmp_path: "Path") -> None:
    with pytest.raises(BookMissing, match="there is no book at"):
        Book.open(tmp_path / "nowhere")


def test_messages_come_back_to_the_letter(book: Book, sample: "Make", trajectory: "Make") -> None:
    text = json.dumps([{"content": "naïve 🐢\u2028 " + "x" * 10_000}], ensure_ascii=False)
    book.append(
        [sample(1, turns=50), sample(2, turns=50)],
        trajectories=[trajectory(1, messages=text), trajectory(2, messages="[]")],
    )

    table = book.batch(str(book.assemble().batch_id)).table(["messages"], trajectories=True)

    assert table.column("messages").to_pylist() == [text, "[]"]


def test_parts_that_are_read_at_once_from_one_file_do_not_disturb_each_other(
    open_book: "OpenBook", sample: "Make"
) -> None:
    """Parts are read ahead by threads, and a part may begin within a row group of another."""
    book = open_book(batch={"turns": 4_000})
    tokens = list(range(4_000))
    book.append(
        [sample(key, turns=10) for key in range(400)],
        trajectories=[{"sample_id": f"s{key}", "token_ids": [key, *tokens]} for key in range(400)],
    )
    batch = book.batch(str(book.assemble().batch_id))

    for _ in range(20):
        parts = list(batch.reader(["sample_id", "token_ids"], trajectories=True, max_rows=7))

        firsts = [int(ids[0].as_py()) for part in parts for ids in part.column("token_ids")]
        assert firsts == [key for part in parts for key in keys(part)]
        assert len(firsts) == 400
