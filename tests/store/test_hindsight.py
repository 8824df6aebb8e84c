"""A decision of the past, made again on the versions that it noted, comes out the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from rollbook.validators.errors import Unknown, VersionExpired

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

Row = dict[str, Any]


def mixed(sample: "Make", key: str, count: int, **changes: Any) -> list[Row]:
    """Return samples of two types, of which every third failed."""
    return [
        sample(f"{key}{nth}", task_type="ab"[nth % 2], reward=float(nth % 3 > 0), turns=10 + nth)
        | changes
        for nth in range(count)
    ]


def test_a_batch_derives_again_though_all_that_came_later_changed_the_book(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(default_task_type={"failure_share": 0.4})
    book.publish(4)
    book.append(mixed(sample, "x", 12))
    book.append([sample("old", weight_version=0, turns=10)], trajectories=None)
    first = str(book.assemble().batch_id)
    clock.tick(5)
    book.append(mixed(sample, "y", 12))
    book.reward([{"sample_id": "x0", "grader": "again", "reward": 1.0, "rewarded_at": clock.now}])
    book.publish(5)
    book.ack(first)
    lenient = open_book(batch={"turns": 60})
    second = str(lenient.assemble().batch_id)
    list(lenient.maintain())

    told = [lenient.rederive(batch_id) for batch_id in (first, second)]

    assert [each.differences for each in told] == [(), ()]
    assert [each.is_same for each in told] == [True, True]
    noted = lenient.query("SELECT COUNT(*) FROM dispositions WHERE sequence = 1 AND position > 0")
    assert told[0].rows == noted[0][0].as_py() - 1  # without the header
    assert told[0].table_versions["samples"] < told[1].table_versions["samples"]


def test_rows_that_were_noted_otherwise_are_told_from_both_sides(
    open_book: "OpenBook", sample: "Make", root: Path
) -> None:
    book = open_book()
    book.append([sample(nth) for nth in range(4)])
    batch_id = str(book.assemble().batch_id)
    DeltaTable(str(root / "dispositions")).update(
        predicate="sample_id = 's2'", updates={"reward": "0.0"}
    )

    told = book.rederive(batch_id)

    assert not told.is_same
    assert [(row["side"], row["sample_id"]) for row in told.differences] == [
        ("derived", "s2"),
        ("noted", "s2"),
    ]
    assert told.differences[1]["reward"] == 0.0


def test_a_batch_whose_table_versions_are_gone_says_so(
    open_book: "OpenBook", sample: "Make", root: Path
) -> None:
    book = open_book()
    book.append([sample(nth) for nth in range(2)])
    book.append([sample(nth) for nth in range(2, 4)])
    batch_id = str(book.assemble().batch_id)
    list(book.maintain())
    DeltaTable(str(root / "samples")).vacuum(0, dry_run=False, enforce_retention_duration=False)

    with pytest.raises(VersionExpired, match=rf"{batch_id} cannot be derived again: version \d+"):
        book.rederive(batch_id)


def test_a_batch_that_is_not_there_or_whose_settings_are_not_is_named(
    open_book: "OpenBook", sample: "Make", root: Path
) -> None:
    book = open_book()
    book.append([sample(nth) for nth in range(4)])
    batch_id = str(book.assemble().batch_id)
    DeltaTable(str(root / "configs")).delete()

    with pytest.raises(Unknown, match="no batch 'train-9'"):
        book.rederive("train-9")
    with pytest.raises(Unknown, match=rf"settings of batch {batch_id} are not stored \(sha256:"):
        book.rederive(batch_id)
