"""A sound book with every kind of row, and the means to damage it past the gate."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rollbook.store import Book, Settings
from rollbook.store.schema import TableName, declared_schema

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    sys.path.append(str(Path(__file__).parents[1] / "store" / "workers"))
    import store_worker as worker

Row = dict[str, Any]
SETTINGS = Settings.model_validate(
    {
        "batch": {"turns": 100, "truncated_share": 0.3},
        "discard": {"max_age_versions": 4, "max_wait_seconds": 86_400},
        "duration_class": {"long": {"max_age_versions": 6}},
        "task_type": {"coding": {"failure_share": 0.5}},
    }
)
NOW: datetime = worker.START
FIRST, SECOND = "train-00000001", "train-00000003"


def passed_and_failed(prefix: str, count: int = 4, **changes: Any) -> list[Row]:
    """Return samples that pass and fail in turn, so that half of every prefix may fail."""
    return [
        worker.sample(f"{prefix}{nth}", **({"reward": float(nth % 2 == 0)} | changes))
        for nth in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Damage:
    """Writes rows that no gate and no assembler would."""

    book: Book

    def append(self, table: TableName, *rows: Row) -> None:
        """Append rows to a table as they are."""
        self.book.tables[table].append(pa.Table.from_pylist(list(rows), declared_schema(table)))

    def stored(self, sample_id: str) -> Row:
        """Return a sample's row."""
        rows = self.book.query("SELECT * FROM samples").to_pylist()
        return next(row for row in rows if row["sample_id"] == sample_id)

    def decision(self, sequence: int, kind: str, **changes: Any) -> Row:
        """Return a row of the journal."""
        plain = {
            "sequence": sequence,
            "position": 1,
            "low_water": 0,
            "kind": kind,
            "decided_at": NOW,
            "weight_version": 10,
        }
        return plain | changes

    def about(self, sequence: int, kind: str, sample_id: str, **changes: Any) -> Row:
        """Return a row of the journal about a sample."""
        row = self.stored(sample_id)
        known = {name: row[name] for name in ("position", "sample_id", "reward")}
        return self.decision(sequence, kind, **known | changes)

    def header(self, sequence: int, **changes: Any) -> Row:
        """Return the header of a pass under the book's settings."""
        plain = {"stream": "train", "settings_fingerprint": SETTINGS.fingerprint, "discarded": 0}
        return self.decision(sequence, "pass", **plain | changes)

    def emit(self, samples: list[Row], *, states: Row | None = None) -> None:
        """Let samples in and put them into the batch `bad`; `states` changes its header."""
        self.book.append(samples)
        turns = [row["turns"] for row in samples]
        cut = [row["turns"] for row in samples if row["status"] == "truncated"]
        header = {
            "batch_id": "bad",
            "target_turns": 100,
            "turns": sum(turns),
            "truncated_turns": sum(cut),
            "samples": len(samples),
            "is_partial": False,
        }
        rows = [
            self.about(50, "assigned", row["sample_id"], batch_id="bad", ordinal=nth)
            for nth, row in enumerate(samples)
        ]
        self.append("dispositions", self.header(50, **header | (states or {})), *rows)

    def discard(self, *, states: Row | None = None, **changes: Any) -> None:
        """Discard the pending sample; `states` changes the pass's header."""
        plain = {"reason": "age_versions", "reasons": ["age_versions"], "limit": 4.0}
        row = self.about(50, "discarded", "spending", **plain | {"age_versions": 5} | changes)
        self.append("dispositions", self.header(50, **{"discarded": 1} | (states or {})), row)


def make_sound(path: Path) -> None:
    """Make a book with samples in every state: two batches, the first of them trained."""
    with Book.create(path, SETTINGS, clock=worker.FakeClock()) as book:
        book.publish(10)
        late = passed_and_failed("b", finished_at=NOW - timedelta(seconds=10), weight_version=6)
        late[1] |= {"status": "truncated", "limit": "turns"}
        early = passed_and_failed("a", finished_at=NOW - timedelta(seconds=20), weight_version=9)
        held = [
            worker.sample("stale", weight_version=5),
            worker.sample("pending", weight_version=10),
            worker.sample("broken", weight_version=10, status="env_error"),
            worker.sample("ungraded", weight_version=10, reward=None),
            worker.sample("unknown", weight_version=10, image_digest=None, gaps=["image_digest"]),
        ]
        calls = [worker.call(f"a0-{nth}", "a0") for nth in range(2)]
        book.append([*early, *late, *held], calls=calls)
        first = book.assemble()
        book.ack(str(first.batch_id), {"ess_share": 0.9, "clipped_share": 0.125})
        second = book.assemble()
        assert (first.batch_id, second.batch_id) == (FIRST, SECOND)


@pytest.fixture(scope="session")
def _sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "book"
    make_sound(path)
    return path


@pytest.fixture
def sound(_sound: Path, tmp_path: Path) -> Iterator[Book]:
    """Return a sound book of the test's own."""
    path = tmp_path / "sound"
    shutil.copytree(_sound, path)
    with Book.open(path, SETTINGS, clock=worker.FakeClock()) as book:
        yield book


@pytest.fixture
def clock() -> worker.FakeClock:
    """Return the clock of the empty book."""
    return worker.FakeClock()


@pytest.fixture
def empty(tmp_path: Path, clock: worker.FakeClock) -> Iterator[Book]:
    """Return a book without a row."""
    with Book.create(tmp_path / "empty", SETTINGS, clock=clock) as book:
        yield book


@pytest.fixture
def damage(sound: Book) -> Damage:
    """Return the means to damage the sound book."""
    return Damage(sound)
