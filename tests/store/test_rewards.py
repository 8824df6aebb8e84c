"""Rewards that come later: the latest before assignment holds, the rest is kept."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

Row = dict[str, Any]


def grading(clock: "FakeClock", key: object = 1, **changes: Any) -> Row:
    """Return a grading of a sample, settled now, but for the changes."""
    plain = {"sample_id": f"s{key}", "reward": 1.0, "grader": "judge 1", "rewarded_at": clock.now}
    return plain | changes


def standing(book: Book) -> list[tuple[str, float | None]]:
    """Return state and reward of every sample, in order of sample."""
    rows = book.query("SELECT state, reward FROM sample_state ORDER BY sample_id").to_pylist()
    return [(row["state"], row["reward"]) for row in rows]


def test_a_sample_awaits_its_reward_and_then_enters_a_batch(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=None, turns=60), sample(2, turns=40)])
    before = book.assemble()

    book.reward([grading(clock, reward=0.0)])
    after = book.assemble()

    assert (before.batch_id, before.funnel[0]["reason"]) == (None, "awaiting_reward")
    assert after.samples == 2


def test_f31a_a_grading_delivered_three_times_is_stored_once(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=None)])

    receipts = [book.reward([grading(clock)]) for _ in range(3)]

    assert [(receipt.added, receipt.duplicates) for receipt in receipts] == [(1, 0), (0, 1), (0, 1)]
    assert book.query("SELECT * FROM rewards").num_rows == 1


def test_f31b_another_reward_under_a_stored_grading_is_quarantined_once_and_the_first_stays(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=None)])
    book.reward([grading(clock, reward=0.5)])

    refused = [book.reward([grading(clock, reward=0.9)]).refused for _ in range(2)]

    assert refused == [1, 1]
    assert standing(book) == [("pending", 0.5)]
    kept = book.query("SELECT of_table, findings[1].rule AS rule FROM quarantine").to_pylist()
    assert kept == [{"of_table": "rewards", "rule": "conflict"}]


def test_f31c_two_gradings_with_equal_content_and_ids_of_their_own_are_two_rows(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1)])

    receipt = book.reward([grading(clock, reward_id="r1"), grading(clock, reward_id="r2")])

    assert receipt.added == 2


def test_f31e_two_deliveries_with_gradings_in_common_are_stored_once(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(key, reward=None) for key in range(9)])

    book.reward([grading(clock, key) for key in range(5)])
    receipt = book.reward([grading(clock, key) for key in range(4, 9)])

    assert (receipt.added, receipt.duplicates) == (4, 1)
    assert book.query("SELECT * FROM rewards").num_rows == 9


def test_f31f_a_grading_is_known_after_compaction_and_after_a_restart(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    with open_book() as first:
        first.append([sample(key, reward=None) for key in range(2)])
        for key in range(2):
            first.reward([grading(clock, key)])
        list(first.maintain())
        in_the_same_process = first.reward([grading(clock, 0)])
    reopened = open_book()

    after_restart = reopened.reward([grading(clock, 1)])

    assert in_the_same_process.duplicates == after_restart.duplicates == 1
    assert reopened.query("SELECT * FROM rewards").num_rows == 2


def test_the_latest_grading_holds_in_whatever_order_they_come(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=0.1)])
    later = grading(clock, reward=0.9, rewarded_at=clock.now + timedelta(seconds=5))
    earlier = grading(clock, reward=0.5, rewarded_at=clock.now + timedelta(seconds=2))

    book.reward([later])
    book.reward([earlier])

    assert standing(book) == [("pending", 0.9)]


def test_a_regrading_after_assignment_is_kept_and_not_trained_on(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, turns=50, reward=0.1), sample(2, turns=50, reward=0.2)])
    batch_id = str(book.assemble().batch_id)

    receipt = book.reward([grading(clock, reward=0.9)])

    assert receipt.added == 1
    assert book.batch(batch_id).table(["reward"]).column(0).to_pylist() == [0.1, 0.2]


def test_bad_and_homeless_gradings_do_not_sink_the_good_ones(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(1, reward=None)])

    receipt = book.reward(
        [
            grading(clock, 404),
            grading(clock, 1, reward=float("nan")),
            grading(clock, 1, reward="1.0"),
            grading(clock, 1, grader=None),
            grading(clock, 1),
        ]
    )

    assert (receipt.arrived, receipt.added, receipt.refused) == (5, 1, 4)
    assert dict(receipt.rules) == {"sample_unknown": 1, "not_finite": 1, "type": 1, "missing": 1}
    assert standing(book) == [("pending", 1.0)]
