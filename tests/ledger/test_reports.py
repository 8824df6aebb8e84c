"""Questions about decisions: discards over time, mixes, refills, batches, interruptions."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    import store_worker as worker

START = worker.START
GROUPS = {"batch": {"turns": 100}, "groups": {"size": 2, "min_members": 2}}


def answer(book: Book, name: str, *columns: str, **params: Any) -> list[tuple[Any, ...]]:
    """Return chosen columns of a question's answer."""
    rows = book.sql(name, **params).select(list(columns)).to_pylist()
    return [tuple(row.values()) for row in rows]


def reopened(book: Book, **sections: Any) -> Book:
    """Return the book under other settings."""
    return Book.open(book.root, Settings.model_validate(sections), clock=worker.FakeClock())


def pair(group: str, first: float, second: float, **changes: Any) -> list[dict[str, Any]]:
    """Return a group of two with these rewards."""
    return [
        worker.sample(f"{group}{nth}", group_id=group, reward=reward, **changes)
        for nth, reward in enumerate((first, second))
    ]


def test_f13_discards_are_told_per_type_step_by_step_and_so_far(empty: Book) -> None:
    empty.publish(10)
    fresh = {"weight_version": 10}
    empty.append(
        [worker.sample(f"s{k}", task_type="short", reward=k % 2, **fresh) for k in range(4)]
        + [worker.sample(f"l{k}", task_type="long", weight_version=5) for k in range(2)]
    )
    empty.assemble()
    empty.append([worker.sample("l9", task_type="long", weight_version=5)])
    empty.assemble()

    told = ("sequence", "task_type", "discarded", "rate", "discarded_so_far", "rate_so_far")

    assert answer(empty, "discard_steps", *told) == [
        (1, "long", 2, 1.0, 2, 1.0),
        (1, "short", 0, 0.0, 0, 0.0),
        (2, "long", 1, 1.0, 3, 1.0),
    ]
    assert answer(empty, "discard_steps", "sequence", task_type="short") == [(1,)]


def test_the_mix_that_was_trained_stands_beside_the_mix_that_came(sound: Book) -> None:
    sound.append([worker.sample("other", task_type="other", duration_class="long", turns=75)])

    told = ("stratum", "submitted_turns", "trained_turns", "submitted_share", "trained_share")

    # Eleven trainable samples of 25 turns came before; one batch of 100 turns was acked.
    assert answer(sound, "mix", *told) == [
        ("coding/any", 300, 100, 0.8, 1.0),
        ("other/long", 75, 0, 0.2, 0.0),
    ]


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        ({"from_time": START}, 1),
        ({"from_time": START.isoformat()}, 1),
        ({"from_time": START + timedelta(microseconds=1)}, 0),
        ({"to_time": START}, 0),
        ({"to_time": START + timedelta(microseconds=1)}, 1),
    ],
)
def test_the_window_of_a_mix_is_half_open(sound: Book, window: dict[str, Any], rows: int) -> None:
    assert len(answer(sound, "mix", "stratum", **window)) == rows


def test_a_prompt_that_came_to_nothing_is_asked_for_once_with_all_its_reasons(
    empty: Book,
) -> None:
    empty.publish(10)
    now = {"weight_version": 10}
    with reopened(empty, **GROUPS) as book:
        book.append(
            [
                *pair("flat", 1.0, 1.0, **now),
                *pair("mixed", 1.0, 0.0, **now),
                *[row | {"weight_version": 5} for row in pair("stale", 1.0, 0.0)],
                *pair("dead", 0.0, 0.0, status="env_error", **now),
            ]
        )
        book.assemble()

        told = ("task_type", "prompts", "samples", "turns", "reasons")

        assert answer(book, "refill", *told) == [
            (
                "coding",
                3,
                6,
                150,
                ["age_versions", "env_error", "flat", "group_incomplete", "too_easy"],
            )
        ]


def test_a_prompt_that_was_tried_again_with_success_needs_no_refill(empty: Book) -> None:
    empty.publish(10)
    empty.append(
        [
            worker.sample("try0", task_id="t", status="env_error", weight_version=10),
            worker.sample("try1", task_id="t", attempt=1, weight_version=10),
            worker.sample("lost", task_id="u", status="timed_out", weight_version=10),
        ]
    )

    assert answer(empty, "refill", "prompts", "reasons") == [(1, ["timed_out"])]
    assert answer(empty, "refill", "prompts", from_time=START + timedelta(seconds=1)) == []


def test_a_batch_stands_with_its_shares_and_what_the_learner_said(sound: Book) -> None:
    told = ("batch_id", "target_turns", "turns", "units", "failed_share", "truncated_share")

    assert answer(sound, "batches", *told) == [
        ("train-00000001", 100, 100, 4, 0.5, 0.0),
        ("train-00000003", 100, 100, 4, 0.5, 0.25),
    ]
    assert answer(sound, "batches", "discarded", "ess_share", "clipped_share") == [
        (1, 0.9, 0.125),
        (0, None, None),
    ]
    assert answer(sound, "batches", "batch_id", stream="replay") == []


def test_a_figure_that_is_no_number_is_unknown(sound: Book) -> None:
    sound.ack("train-00000003", {"ess_share": "high"})

    assert answer(sound, "batches", "ess_share")[1] == (None,)


@pytest.mark.parametrize(("reward", "side"), [(0.0, "too_hard"), (1.0, "too_easy")])
def test_an_interruption_is_counted_on_its_side(empty: Book, reward: float, side: str) -> None:
    empty.publish(10)
    with reopened(empty, batch={"turns": 100}) as book:
        book.append([worker.sample(k, reward=reward, weight_version=10) for k in range(4)])
        passes = [book.assemble().blocker for _ in range(2)]

        told = ("stream", "side", "interruptions", "flat_groups")

        assert passes == ["no_gradient", "no_gradient"]
        assert answer(book, "interruptions", *told) == [("train", side, 1, 0)]


def test_flat_groups_are_counted_on_their_sides(empty: Book) -> None:
    empty.publish(10)
    with reopened(empty, **GROUPS) as book:
        rows = [*pair("e", 1.0, 1.0), *pair("f", 0.9, 0.9), *pair("h", 0.1, 0.1)]
        book.append([row | {"weight_version": 10} for row in rows])
        book.assemble()

        told = ("side", "interruptions", "flat_groups", "flat_samples", "flat_turns")

        assert answer(book, "interruptions", *told) == [
            ("too_easy", 0, 2, 4, 100),
            ("too_hard", 0, 1, 2, 50),
        ]


def test_flat_groups_that_are_kept_interrupt_on_both_sides(empty: Book) -> None:
    empty.publish(10)
    groups = GROUPS["groups"] | {"flat": "keep"}
    with reopened(empty, batch={"turns": 100}, groups=groups) as book:
        rows = [*pair("e", 1.0, 1.0), *pair("h", 0.0, 0.0)]
        book.append([row | {"weight_version": 10} for row in rows])

        assert book.assemble().blocker == "no_gradient"
        assert answer(book, "interruptions", "side", "interruptions") == [("both", 1)]
