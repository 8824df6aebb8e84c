"""Failed turns are at most the share f of their task type's at every prefix, and as many as that.

The failure quota is target and cap: a failed unit comes as soon as it may, and not before.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollbook.store.book import Book
from rollbook.store.settings import Settings

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook, Rows

Row = dict[str, Any]

ASSIGNED = """
    SELECT d.batch_id, s.sample_id, s.task_type, s.group_id, s.status, s.turns, d.reward
    FROM dispositions AS d
    INNER JOIN samples AS s ON s.position = d.position
    WHERE d.kind = 'assigned'
    ORDER BY d.sequence, d.ordinal
"""


def batches(book: Book) -> list[list[Row]]:
    """Return all batches, each with its samples in the order in which they were chosen."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in book.query(ASSIGNED).to_pylist():
        found[row["batch_id"]].append(row)
    return list(found.values())


def aged(sample: "Make", clock: "FakeClock", *rewards: float, **changes: Any) -> list[Row]:
    """Return samples with these rewards, the oldest first."""
    return [
        sample(
            f"{nth:03}",
            reward=reward,
            finished_at=clock.now - timedelta(seconds=len(rewards) - nth),
            **changes,
        )
        for nth, reward in enumerate(rewards)
    ]


def held(made: Any) -> dict[str, int]:
    """Return reason → samples of what a pass held."""
    return {row["reason"]: row["samples"] for row in made.funnel if row["step"] == "held"}


# -- one quota -----------------------------------------------------------------------------------


def test_f17_all_eight_failures_are_kept_and_broken_environments_never_stand_in_for_more(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 40}, default_task_type={"failure_share": 0.25})
    book.append([sample(f"ok{key}", turns=1, reward=1.0) for key in range(80)])
    book.append([sample(f"fail{key}", turns=1, reward=0.0) for key in range(8)])
    book.append(
        [sample(f"broken{key}", turns=1, reward=0.0, status="env_error") for key in range(12)]
    )

    made = book.assemble()

    (batch,) = batches(book)
    rewards = [row["reward"] for row in batch]
    (header,) = book.query("SELECT * FROM dispositions WHERE kind = 'pass'").to_pylist()
    assert (made.samples, rewards.count(0.0)) == (40, 8)
    assert (header["turns"], header["failed_turns"]) == (40, 8)
    assert not {row["sample_id"] for row in batch} & {f"sbroken{key}" for key in range(12)}
    assert held(made) == {"never_trainable": 12}


@pytest.mark.parametrize(
    ("share", "arrived", "order"),
    [
        (0.25, "PPPPPPFF", "PPPFPPPF"),
        (0.25, "FFPPPPPP", "PPPFPPPF"),
        (0.5, "FFFFPPPP", "PFPFPFPF"),
        (0.5, "PPPPPPFF", "PFPFPPPP"),
        (0.2, "FPPPPPPP", "PPPPFPPP"),
        (1.0, "FFPFPPPP", "FFPFPPPP"),
        (0.0, "FFPPPPPP", "PPPPPP"),
    ],
)
def test_a_failed_sample_comes_as_soon_as_its_share_allows_and_not_before(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    share: float,
    arrived: str,
    order: str,
) -> None:
    book = open_book(
        batch={"turns": len(order)}, default_task_type={"failure_share": share, "success_at": 0.2}
    )
    rewards = [0.1 if kind == "F" else 0.5 + nth / 100 for nth, kind in enumerate(arrived)]
    book.append(aged(sample, clock, *rewards, turns=1))

    book.assemble()

    (batch,) = batches(book)
    assert "".join("F" if row["reward"] < 0.2 else "P" for row in batch) == order


def test_a_failed_sample_that_fits_into_no_batch_keeps_no_other_waiting(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    """With a share of 0.2 and 100 turns no more than 25 failed ones find enough passed before."""
    book = open_book(batch={"turns": 100}, default_task_type={"failure_share": 0.2})
    large, *small = aged(sample, clock, 0.0, *([0.0] * 4 + [1.0] * 16), turns=5)
    book.append([large | {"turns": 60}, *small])

    made = book.assemble()

    (header,) = book.query("SELECT * FROM dispositions WHERE kind = 'pass'").to_pylist()
    assert (made.turns, header["failed_turns"], held(made)) == (100, 20, {"failure_quota": 1})
    assert made.pending_turns == 100


def test_a_group_that_failed_for_exactly_the_share_needs_no_other(
    open_book: "OpenBook", sample: "Make"
) -> None:
    """0.29 * 100 is 28.999999999999996."""
    book = open_book(
        batch={"turns": 100}, groups={"size": 2}, default_task_type={"failure_share": 0.29}
    )
    book.append([sample("passed", group_id="g", turns=71, reward=1.0)])
    book.append([sample("failed", group_id="g", turns=29, reward=0.0)])

    assert book.assemble().turns == 100


def test_failures_beyond_the_share_are_held_and_counted_until_enough_passes_come(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 100}, default_task_type={"failure_share": 0.5})
    book.append(aged(sample, clock, 0.0, 0.0, 0.0, 0.0, 1.0))
    first = book.assemble()
    book.append([sample("passed", reward=1.0)])

    second = book.assemble()

    assert (first.batch_id, first.blocker, held(first)) == (None, "short", {"failure_quota": 3})
    assert (first.pending_turns, first.missing_turns) == (50, 50)
    assert (second.turns, held(second)) == (100, {"failure_quota": 2})


def test_what_the_quota_holds_is_counted_to_the_last_however_much_it_is(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 100}, default_task_type={"failure_share": 0.4})
    book.append(aged(sample, clock, *[0.0] * 50))

    made = book.assemble()

    assert (made.blocker, made.pending_turns, made.missing_turns) == ("short", 0, 100)
    assert held(made) == {"failure_quota": 50}


def test_what_the_quota_holds_ages_and_is_discarded_like_any_other(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(default_task_type={"failure_share": 0.0})
    book.append([sample(key, reward=0.0) for key in range(4)])
    before = book.assemble()
    book.publish(6)

    after = book.assemble()

    assert (before.discarded, held(before)) == (0, {"failure_quota": 4})
    assert (after.discarded, held(after)) == (4, {})


def test_each_task_type_has_a_quota_and_a_bound_of_success_of_its_own(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(
        batch={"turns": 8},
        default_task_type={"failure_share": 0.0},
        task_type={"hard": {"success_at": 0.2, "failure_share": 0.5}},
    )
    book.append(aged(sample, clock, 0.3, 0.3, 0.1, 0.1, turns=1, task_type="hard"))
    easy = aged(sample, clock, 0.9, 0.9, 0.9, 0.9, 0.3, 0.3, turns=1, task_type="easy")
    book.append([row | {"sample_id": f"easy {row['sample_id']}"} for row in easy])

    made = book.assemble()

    (batch,) = batches(book)
    by_type = {
        name: sorted(row["reward"] for row in batch if row["task_type"] == name)
        for name in ("hard", "easy")
    }
    assert by_type == {"hard": [0.1, 0.1, 0.3, 0.3], "easy": [0.9] * 4}
    assert held(made) == {"failure_quota": 2}


def test_a_group_enters_with_all_its_turns_and_counts_by_how_many_of_them_failed(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(
        batch={"turns": 8}, groups={"size": 4}, default_task_type={"failure_share": 0.5}
    )
    for name, rewards in (("bad", [0, 0, 0, 1]), ("worse", [0, 0, 0, 1]), ("good", [0, 1, 1, 1])):
        book.append(
            [
                sample(f"{name}{nth}", group_id=name, turns=1, reward=float(reward))
                for nth, reward in enumerate(rewards)
            ]
        )

    made = book.assemble()

    (batch,) = batches(book)
    assert [row["group_id"] for row in batch] == ["good"] * 4 + ["bad"] * 4
    assert held(made) == {"failure_quota": 4}


# -- whatever the pool ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Pool:
    """A random pool of samples and the limits that it meets."""

    samples: list[tuple[str, str, int, bool, bool, int]]
    failure_shares: tuple[float, float]
    truncated_share: float
    is_grouped: bool

    @property
    def settings(self) -> Settings:
        first, second = self.failure_shares
        return Settings.model_validate(
            {
                "batch": {"turns": 24, "truncated_share": self.truncated_share},
                "groups": {"size": 2, "flat": "keep"} if self.is_grouped else {},
                "default_task_type": {"failure_share": first},
                "task_type": {"b": {"failure_share": second}},
                "shares": {"least": {"b/long": 0.25}, "least_wait_seconds": 0},
            }
        )

    def rows(self, sample: "Make", clock: "FakeClock") -> list[Row]:
        """Return the samples; with groups every two are one, of one stratum."""
        placed = [nth // 2 * 2 if self.is_grouped else nth for nth in range(len(self.samples))]
        return [
            sample(
                nth,
                task_type=self.samples[place][0],
                duration_class=self.samples[place][1],
                group_id=f"g{place}",
                turns=turns,
                reward=float(is_passed),
                status="truncated" if is_cut_short else "completed",
                started_at=None,
                finished_at=clock.now - timedelta(seconds=age),
            )
            for nth, (place, (_, _, turns, is_passed, is_cut_short, age)) in enumerate(
                zip(placed, self.samples, strict=True)
            )
        ]


POOLS = st.builds(
    Pool,
    samples=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["short", "long"]),
            st.integers(1, 9),  # turns
            st.booleans(),  # passed
            st.booleans(),  # truncated
            st.integers(0, 5),  # age: equals are wanted
        ),
        min_size=20,
        max_size=60,
    ),
    failure_shares=st.tuples(*[st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])] * 2),
    truncated_share=st.sampled_from([0.0, 0.2, 0.29, 0.5, 1.0]),
    is_grouped=st.booleans(),
)
LimitedBook = Callable[[Settings], Book]


@pytest.fixture
def limited_book(
    blank: Path, clock: "FakeClock", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LimitedBook]:
    """Return a function that opens a new book with some settings."""
    opened: list[Book] = []

    def enter(settings: Settings) -> Book:
        root = tmp_path_factory.mktemp("pool") / "book"
        copytree(blank, root)
        opened.append(Book.open(root, settings, clock=clock))
        return opened[-1]

    yield enter
    for book in opened:
        book.close()


def assert_prefixes_hold(batch: list[Row], share: dict[str, float]) -> None:
    """Assert failed <= f * all after every unit of a batch, by task type."""
    failed: dict[str, int] = defaultdict(int)
    turns: dict[str, int] = defaultdict(int)
    for place, row in enumerate(batch):
        name = row["task_type"]
        turns[name] += row["turns"]
        failed[name] += row["turns"] if row["reward"] < 0.5 else 0
        is_whole = place + 1 == len(batch) or batch[place + 1]["group_id"] != row["group_id"]
        assert not is_whole or failed[name] <= share[name] * turns[name] + 1e-6


@pytest.mark.parametrize("examples", [8, pytest.param(500, marks=pytest.mark.chaos)])
def test_whatever_the_pool_no_prefix_and_no_batch_is_over_the_quota_or_the_truncation_line(
    limited_book: LimitedBook, rows: "Rows", examples: int
) -> None:
    made: list[list[Row]] = []

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(pool=POOLS)
    def holds(pool: Pool) -> None:
        clock = rows.FakeClock()
        book = limited_book(pool.settings)
        book.append(pool.rows(rows.sample, clock))

        while book.assemble().batch_id:
            pass

        for batch in batches(book):
            made.append(batch)
            assert sum(row["turns"] for row in batch) >= 24
            assert_prefixes_hold(batch, dict(zip("ab", pool.failure_shares, strict=True)))
            truncated = sum(row["turns"] for row in batch if row["status"] == "truncated")
            assert pool.truncated_share == 1 or truncated <= pool.truncated_share * 24 + 1e-6

    holds()

    assert made


def test_a_pass_notes_what_kept_turns_out_most_first(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 100}, default_task_type={"failure_share": 0.4})
    book.append(aged(sample, clock, 0.0, 0.0, 0.0))
    book.append([sample("awaited", reward=None, turns=30)])
    book.append([sample("old", finished_at=clock.now - timedelta(2), started_at=None, turns=50)])

    book.assemble()

    noted = book.query("SELECT blocker, blockers FROM decision").to_pylist()
    assert [row["blocker"] for row in noted] == ["short"]
    assert json.loads(noted[0]["blockers"]) == [
        {"reason": "failure_quota", "turns": 75},
        {"reason": "wait_seconds", "turns": 50},
        {"reason": "awaiting_reward", "turns": 30},
    ]
