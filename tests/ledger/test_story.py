"""How a batch came to be: one sentence, the blockers that it met, and since when."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.ledger import explain, tell
from rollbook.store import Book
from rollbook.validators.errors import Refused, Unknown

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    import store_worker as worker

START = worker.START


def appended(book: Book, key: str, count: int, **changes: Any) -> None:
    book.append([worker.sample(f"{key}{nth}", **changes) for nth in range(count)])


def test_a_batch_tells_what_it_waited_for_since_when_and_what_was_held(
    empty: Book, clock: worker.FakeClock
) -> None:
    appended(empty, "a", 2)
    appended(empty, "late", 2, reward=None)
    empty.assemble()
    clock.tick(60)
    appended(empty, "b", 1)
    empty.assemble()
    clock.tick(340)
    appended(empty, "c", 1)
    made = empty.assemble()

    story = tell(empty.decision(str(made.batch_id)))

    assert story.sentence == (
        "train-00000002 was made at 2026-03-01 12:06:40Z with 100 turns of 100 in 4 samples; for"
        " 400 s before, it was short by 50 turns, since 2026-03-01 12:00:00Z (turns held: 50"
        " awaiting_reward)"
    )
    assert [(wait.blocker, wait.missing_turns) for wait in story.waits] == [("short", 50)]
    assert {row["step"]: row["turns"] for row in story.funnel}["assigned"] == 100


def test_a_batch_that_no_pass_found_blocked_says_so(empty: Book) -> None:
    appended(empty, "a", 4)
    made = empty.assemble()

    story = tell(empty.decision(str(made.batch_id)))

    assert story.sentence.endswith("in 4 samples; no pass found it blocked before")
    assert story.settings_fingerprint == empty.settings.fingerprint


def test_the_waits_of_a_batch_begin_after_the_batch_before_it(
    empty: Book, clock: worker.FakeClock
) -> None:
    empty.assemble()
    appended(empty, "a", 4)
    empty.assemble()
    clock.tick(10)
    appended(empty, "b", 4, reward=1.0)
    empty.assemble()
    clock.tick(20)
    appended(empty, "c", 1, reward=0.5)
    made = empty.assemble()

    story = tell(empty.decision(str(made.batch_id)))

    assert [wait.blocker for wait in story.waits] == ["no_gradient"]
    assert (
        "for 20 s before, it was without a gradient, since 2026-03-01 12:00:10Z" in story.sentence
    )


def test_a_batch_that_is_not_there_has_no_story(empty: Book) -> None:
    with pytest.raises(Unknown, match="no batch 'train-7'"):
        empty.decision("train-7")


def test_a_past_moment_is_explained_by_what_was_known_then(
    empty: Book, clock: worker.FakeClock
) -> None:
    appended(empty, "a", 2)
    empty.heartbeat("p", in_flight=1, in_flight_turns=50)
    clock.tick(60)
    appended(empty, "b", 2)
    empty.ack(str(empty.assemble().batch_id))

    before, after = (
        explain(empty.facts(at=START + timedelta(seconds=at))).sentence for at in (59, 60)
    )

    assert before.startswith("short by 50 turns of 100; 1 sample in flight (50 turns)")
    assert after.startswith("short by 100 turns of 100; not enough samples in flight (50 of 100")
    assert explain(empty.facts(at=START - timedelta(1))).verdict == "empty"


def test_a_moment_that_is_still_to_come_is_refused(empty: Book) -> None:
    with pytest.raises(Refused, match=r"2026-03-02T12:00:00.* is still to come: it is 2026-03-01"):
        empty.facts(at=START + timedelta(1))
