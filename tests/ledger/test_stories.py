"""Whatever happens to a book, it keeps its promises, and every batch derives again.

The stories are random: rows of every kind, rewards, weights, passes, acks, releases, compaction.
"""

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from rollbook.ledger import audit
from rollbook.store import Book, Settings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    import store_worker as worker

Row = dict[str, Any]


# A story in which every one of the settings below makes a batch.
MAKES_A_BATCH = 11
SETTINGS: dict[str, Row] = {
    "plain": {"batch": {"turns": 40}},
    "lines": {
        "batch": {"turns": 40, "truncated_share": 0.3, "max_unit_turns": 50},
        "default_task_type": {"failure_share": 0.5},
        "shares": {"least": {"a/any": 0.2}, "least_wait_seconds": 40},
        "discard": {"max_age_versions": 2, "max_wait_seconds": 300},
    },
    "groups": {
        "batch": {"turns": 40},
        "groups": {"size": 3, "min_members": 2, "settle_seconds": 30},
        "discard": {"max_age_versions": 2, "policy": "group"},
    },
}


def happen(book: Book, clock: worker.FakeClock, seed: int) -> Iterator[None]:
    """Let a random story happen to a book: one step after the other."""
    chance = Random(seed)
    version = 1
    book.publish(version)
    for nth in range(chance.randint(3, 4)):
        clock.tick(chance.choice([1, 20, 100]))
        count = chance.choice([0, 6, 9])
        book.append(
            [
                worker.sample(
                    f"{nth}-{key}",
                    task_type=chance.choice("ab"),
                    group_id=f"g{nth}-{key // 3}",
                    reward=chance.choice([0.0, 1.0, 1.0, 1.0, None]),
                    status=chance.choice([*["completed"] * 5, "truncated", "env_error"]),
                    turns=chance.randint(1, 60),
                    weight_version=chance.randint(
                        max(version - 3, 0), version + chance.randint(0, 1)
                    ),
                    finished_at=clock.now - timedelta(seconds=chance.randint(0, 50)),
                    started_at=None,
                )
                for key in range(count)
            ]
        )
        yield
        if chance.random() < 0.4:
            version += 1
            book.publish(version)
        graded = {"grader": "late", "reward": chance.choice([0.0, 1.0]), "rewarded_at": clock.now}
        if count and chance.random() < 0.5:
            book.reward([{"sample_id": f"{nth}-{chance.randrange(count)}", **graded}])
            yield
        made = book.assemble(chance.choice([None, "learner"]))
        if made.batch_id and not made.is_redelivered and chance.random() < 0.6:
            if chance.random() < 0.5:
                book.ack(made.batch_id)
            else:
                book.release(made.batch_id)
        yield
        if chance.random() < 0.2:
            list(book.maintain())
            yield


@pytest.mark.parametrize(
    ("sections", "examples"),
    [
        *(pytest.param(each, 1, id=name) for name, each in SETTINGS.items() if name != "plain"),
        *(
            pytest.param(each, 30, id=f"{name}, many", marks=pytest.mark.chaos)
            for name, each in SETTINGS.items()
        ),
    ],
)
def test_after_every_step_no_rule_is_broken_and_at_the_end_all_of_it_can_be_told_again(
    sections: Row, examples: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every batch derives again, and every moment is known as it was known then."""
    derived = []

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit] if examples == 1 else list(Phase),
    )
    @given(seed=st.integers(0, 2**32))
    @example(seed=MAKES_A_BATCH)
    def holds(seed: int) -> None:
        clock = worker.FakeClock()
        root = tmp_path_factory.mktemp("story") / "book"
        with Book.create(root, Settings.model_validate(sections), clock=clock) as book:
            known = {}
            for _ in happen(book, clock, seed):
                assert audit(book) == []
                known[clock.now] = book.facts()
            found = book.query("SELECT batch_id FROM batch ORDER BY sequence").to_pylist()
            told = [book.rederive(row["batch_id"]) for row in found]
            derived.extend(told)

            assert [each.differences for each in told] == [()] * len(told)
            for moment, facts in known.items():
                assert book.facts(at=moment) == facts

    holds()
    assert derived
