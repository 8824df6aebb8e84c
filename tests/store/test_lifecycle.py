"""Whatever happens in whatever order, the book does what a page of plain Python says it does.

Hypothesis lets things happen: rows come, come again, are graded late, age, are put into
batches, delivered, trained on and released; time passes, weights are published, the book is
closed, opened and compacted. After every step the book must agree with the model and keep
its promises.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rollbook.store.book import Book
from rollbook.store.settings import Settings
from rollbook.validators.errors import Refused

if TYPE_CHECKING:
    from tests.store.conftest import Rows

TURNS, LEASE, MAX_AGE, MAX_WAIT = 8, 300.0, 2, 10_000.0

BROKEN_PROMISES = """
    SELECT 'a sample is in two batches that are alive' AS what, d.sample_id AS id
    FROM dispositions AS d
    INNER JOIN batch AS b ON b.batch_id = d.batch_id AND b.state <> 'released'
    WHERE d.kind = 'assigned' GROUP BY d.sample_id HAVING COUNT(*) > 1
    UNION ALL
    SELECT 'a batch is below T, or holds other turns than its samples', b.batch_id
    FROM batch AS b
    INNER JOIN dispositions AS d ON d.batch_id = b.batch_id AND d.kind = 'assigned'
    INNER JOIN samples AS s ON s.sample_id = d.sample_id
    GROUP BY b.batch_id, b.turns, b.samples, b.target_turns
    HAVING b.turns < b.target_turns OR b.turns <> SUM(s.turns) OR b.samples <> COUNT(*)
    UNION ALL
    SELECT 'a discard lacks its reason, its limit or the settings that held it', d.sample_id
    FROM dispositions AS d
    LEFT JOIN decision AS p ON p.sequence = d.sequence
    LEFT JOIN configs AS c ON c.fingerprint = p.settings_fingerprint
    WHERE d.kind = 'discarded' AND (
        d.reason IS NULL OR NOT list_contains(d.reasons, d.reason) OR d."limit" IS NULL
        OR c.document IS NULL
    )
"""
LEDGER = """
    SELECT
        CAST(SUM(samples) AS BIGINT) AS samples,
        CAST(SUM(turns) AS BIGINT) AS turns,
        SUM(env_seconds) AS env_seconds
    FROM ledger
"""


@dataclass
class Sampled:
    """What the model knows of a sample."""

    turns: int
    status: str
    reward: float | None
    since: datetime
    position: int
    weight_version: int
    decided: str | None = None

    @property
    def state(self) -> str:
        if self.decided:
            return self.decided
        if self.status != "completed":
            return "never_trainable"
        return "awaiting_reward" if self.reward is None else "pending"


@dataclass
class Held:
    """What the model knows of a batch."""

    keys: list[str]
    state: str = "assigned"
    lease_until: datetime | None = None


@dataclass
class Model:
    """The book, said plainly."""

    samples: dict[str, Sampled] = field(default_factory=dict)
    batches: dict[str, Held] = field(default_factory=dict)
    version: int = 0

    def deliverable(self, now: datetime, *, with_unheld: bool) -> str | None:
        for batch_id, batch in self.batches.items():
            is_free = with_unheld if batch.lease_until is None else batch.lease_until <= now
            if batch.state == "assigned" and is_free:
                return batch_id
        return None

    def discard(self, now: datetime) -> int:
        stale = [
            each
            for each in self.samples.values()
            if each.state in ("pending", "awaiting_reward")
            and (
                self.version - each.weight_version > MAX_AGE
                or (now - each.since).total_seconds() > MAX_WAIT
            )
        ]
        for each in stale:
            each.decided = "discarded"
        return len(stale)

    def cut(self) -> list[str]:
        pending = [key for key, each in self.samples.items() if each.state == "pending"]
        chosen, turns = list[str](), 0
        for key in sorted(pending, key=lambda k: (self.samples[k].since, self.samples[k].position)):
            chosen.append(key)
            turns += self.samples[key].turns
            if turns >= TURNS:
                return chosen if len({self.samples[k].reward for k in chosen}) > 1 else []
        return []

    def decide(self, keys: list[str], decided: str | None) -> None:
        for key in keys:
            self.samples[key].decided = decided


Arrival = tuple[int, str, float | None, int, int]
ARRIVALS = st.lists(
    st.tuples(
        st.integers(1, 5),  # turns
        st.sampled_from(["completed", "completed", "completed", "env_error"]),
        st.sampled_from([1.0, 0.0, None]),  # reward
        st.integers(0, 40),  # tens of seconds since it finished: equals are wanted
        st.integers(0, 2),  # versions behind
    ),
    min_size=1,
    max_size=6,
)
NTH = st.integers(0, 1_000)


class Lifecycle(RuleBasedStateMachine):
    """Does to a book and to the model the same."""

    def __init__(self, root: Path, rows: "Rows") -> None:
        super().__init__()
        self.rows, self.root, self.clock, self.model = rows, root, rows.FakeClock(), Model()
        self.settings = Settings.model_validate(
            {
                "batch": {"turns": TURNS, "lease_seconds": LEASE},
                "discard": {"max_age_versions": MAX_AGE, "max_wait_seconds": MAX_WAIT},
            }
        )
        self.delivered: list[dict[str, Any]] = []
        self.book = Book.create(root, self.settings, clock=self.clock)
        self.book.publish(0)

    def teardown(self) -> None:
        self.book.close()

    @rule(arrivals=ARRIVALS, is_reversed=st.booleans())
    def append(self, arrivals: list[Arrival], *, is_reversed: bool) -> None:
        rows: list[dict[str, Any]] = []
        for turns, status, reward, tens, behind in arrivals:
            key = len(self.delivered) + len(rows)
            since = self.clock.now - timedelta(seconds=10 * tens)
            version = max(self.model.version - behind, 0)
            rows.append(
                self.rows.sample(
                    key,
                    turns=turns,
                    status=status,
                    reward=reward,
                    started_at=since,
                    finished_at=since,
                    weight_version=version,
                )
            )
        self.delivered += rows

        receipt = self.book.append(rows[::-1] if is_reversed else rows)

        assert receipt.added == len(rows)
        self._are_placed(rows)

    def _are_placed(self, rows: list[dict[str, Any]]) -> None:
        """Take the samples of a delivery into the model, in the order of their positions."""
        found = self.book.query("SELECT sample_id, position FROM samples").to_pylist()
        positions = {each["sample_id"]: each["position"] for each in found}
        rows.sort(key=lambda row: (row["finished_at"], row["sample_id"]))
        places = [positions[row["sample_id"]] for row in rows]
        assert places == sorted(places)
        for row, position in zip(rows, places, strict=True):
            self.model.samples[row["sample_id"]] = Sampled(
                row["turns"],
                row["status"],
                row["reward"],
                row["finished_at"],
                position,
                row["weight_version"],
            )

    @precondition(lambda self: self.delivered)
    @rule(nth=NTH, count=st.integers(1, 4))
    def deliver_again(self, nth: int, count: int) -> None:
        again = [self.delivered[(nth + step) % len(self.delivered)] for step in range(count)]

        receipt = self.book.append(again)

        assert (receipt.duplicates, receipt.refused) == (count, 0)

    @precondition(lambda self: self.delivered)
    @rule(nth=NTH)
    def deliver_otherwise(self, nth: int) -> None:
        row = self.delivered[nth % len(self.delivered)]

        receipt = self.book.append([row | {"turns": row["turns"] + 1}])

        assert (receipt.added, receipt.refused) == (0, 1)

    @precondition(lambda self: self.delivered)
    @rule(nth=NTH, reward=st.sampled_from([0.25, 0.75]))
    def grade(self, nth: int, reward: float) -> None:
        key = f"s{nth % len(self.delivered)}"
        self.clock.tick(1)
        self.model.samples[key].reward = reward

        receipt = self.book.reward(
            [{"sample_id": key, "reward": reward, "grader": "g", "rewarded_at": self.clock.now}]
        )

        assert receipt.added == 1

    @rule()
    def publish(self) -> None:
        self.model.version += 1

        assert self.book.publish(self.model.version)

    @rule(seconds=st.sampled_from([1.0, LEASE - 1, LEASE, 3_600.0, MAX_WAIT]))
    def tick(self, seconds: float) -> None:
        self.clock.tick(seconds)

    @rule(learner=st.sampled_from([None, "left", "right"]))
    def assemble(self, learner: str | None) -> None:
        again = self.model.deliverable(self.clock.now, with_unheld=False) if learner else None
        discarded = 0 if again else self.model.discard(self.clock.now)
        keys = [] if again else self.model.cut()

        made = self.book.assemble(learner)

        assert made.is_redelivered == (again is not None)
        if again:
            assert made.batch_id == again
        else:
            assert made.discarded == discarded
            self._was_cut(made.batch_id, keys)
        self._is_held(made.batch_id, learner)

    @rule(learner=st.sampled_from(["left", "right"]))
    def take(self, learner: str) -> None:
        waiting = self.model.deliverable(self.clock.now, with_unheld=True)
        keys = []
        if waiting is None:
            self.model.discard(self.clock.now)
            keys = self.model.cut()

        batch = next(self.book.batches(learner), None)

        batch_id = batch.batch_id if batch else None
        if waiting:
            assert batch_id == waiting
        else:
            self._was_cut(batch_id, keys)
        self._is_held(batch_id, learner)

    def _was_cut(self, batch_id: str | None, keys: list[str]) -> None:
        """Compare a batch that was made with the one that the model would make."""
        assert (batch_id is not None) == bool(keys)
        if batch_id:
            assert batch_id not in self.model.batches
            rows = self.book.batch(batch_id).rows.sort_by("ordinal")
            assert rows["sample_id"].to_pylist() == keys
            assert rows["reward"].to_pylist() == [self.model.samples[k].reward for k in keys]
            self.model.batches[batch_id] = Held(keys)
            self.model.decide(keys, "assigned")

    def _is_held(self, batch_id: str | None, learner: str | None) -> None:
        if batch_id and learner:
            until = self.clock.now + timedelta(seconds=LEASE)
            self.model.batches[batch_id].lease_until = until

    @precondition(lambda self: self.model.batches)
    @rule(nth=NTH)
    def ack(self, nth: int) -> None:
        batch_id, batch = self._batch(nth)
        if batch.state == "released":
            with pytest.raises(Refused):
                self.book.ack(batch_id)
            return

        ack = self.book.ack(batch_id)

        assert (ack.is_first, ack.samples) == (batch.state == "assigned", len(batch.keys))
        batch.state = "trained"
        self.model.decide(batch.keys, "trained")

    @precondition(lambda self: self.model.batches)
    @rule(nth=NTH)
    def release(self, nth: int) -> None:
        batch_id, batch = self._batch(nth)
        if batch.state == "trained":
            with pytest.raises(Refused):
                self.book.release(batch_id)
            return

        released = self.book.release(batch_id)

        assert released == (len(batch.keys) if batch.state == "assigned" else 0)
        if batch.state == "assigned":
            batch.state = "released"
            self.model.decide(batch.keys, None)

    def _batch(self, nth: int) -> tuple[str, Held]:
        return list(self.model.batches.items())[nth % len(self.model.batches)]

    @rule()
    def reopen(self) -> None:
        self.book.close()
        self.book = Book.open(self.root, self.settings, clock=self.clock)

    @rule()
    def maintain(self) -> None:
        list(self.book.maintain())

    @invariant()
    def every_sample_is_in_the_one_state_that_the_model_says(self) -> None:
        rows = self.book.query("SELECT sample_id, state FROM sample_state").to_pylist()
        assert len(rows) == len(self.delivered)
        assert {row["sample_id"]: row["state"] for row in rows} == {
            key: each.state for key, each in self.model.samples.items()
        }

    @invariant()
    def no_promise_is_broken(self) -> None:
        assert self.book.query(BROKEN_PROMISES).to_pylist() == []

    @invariant()
    def the_ledger_is_the_sum_of_the_samples(self) -> None:
        (sums,) = self.book.query(LEDGER).to_pylist()
        rows = self.delivered
        assert sums["samples"] == (len(rows) or None)
        assert sums["turns"] == (sum(row["turns"] for row in rows) or None)
        assert sums["env_seconds"] == (sum(row["env_seconds"] for row in rows) or None)


@pytest.mark.parametrize(
    ("examples", "steps"), [(2, 12), pytest.param(60, 50, marks=pytest.mark.chaos)]
)
def test_whatever_happens_the_book_agrees_with_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    rows: "Rows",
    report: Callable[[str], None],
    *,
    examples: int,
    steps: int,
) -> None:
    begun: list[Path] = []

    class Life(Lifecycle):
        def __init__(self) -> None:
            begun.append(tmp_path_factory.mktemp("lifecycle") / "book")
            super().__init__(begun[-1], rows)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
        ),
    )

    report(f"{len(begun)} lives of a book, up to {steps} steps each")
