"""What tests run in processes of their own, and the rows that all tests of the store use."""

import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

from rollbook.store.book import Book
from rollbook.store.clock import system_clock
from rollbook.store.settings import Settings
from rollbook.validators.digests import digest

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
Row = dict[str, Any]


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the present moment."""
        return self.now

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def sample(key: object, **changes: Any) -> Row:
    """Return a sample that may be trained on at once, but for the changes.

    All pass, each with a reward of its own: a batch of equal rewards is not emitted.
    """
    plain = {
        "sample_id": f"s{key}",
        "task_id": f"task-{key}",
        "tenant": "acme",
        "task_type": "coding",
        "attempt": 0,
        "status": "completed",
        "reward": 0.5 + zlib.crc32(str(key).encode()) / 2**33,
        "turns": 25,
        "env_seconds": 60.0,
        "external_calls": 2,
        "external_calls_failed": 0,
        "started_at": START - timedelta(seconds=60),
        "finished_at": START,
        "weight_version": 1,
        "image_digest": digest("image"),
        "seed": 7,
        "toolchain_version": "harness 1",
        "dependency_digest": digest("recording"),
        "source": "tests",
    }
    return plain | changes


def trajectory(key: object, **changes: Any) -> Row:
    """Return what the model saw and said in sample `key`, told from all others by its tokens."""
    tokens = list(digest(str(key)).removeprefix("sha256:").encode())
    plain = {
        "sample_id": f"s{key}",
        "messages": json.dumps([{"role": "user", "content": str(key)}]),
        "token_ids": tokens,
        "loss_mask": [1] * len(tokens),
        "behaviour_logprobs": [-0.5] * len(tokens),
    }
    return plain | changes


def call(key: object, owner: object, **changes: Any) -> Row:
    """Return an external call that sample `owner` made."""
    plain = {
        "call_id": f"c{key}",
        "operation_id": f"o{key}",
        "sample_id": f"s{owner}",
        "tenant": "acme",
        "tool": "search",
        "status": "ok",
    }
    return plain | changes


def append(book: Book, *, first: int, count: int, size: int) -> Iterator[Row]:
    """Append samples with a trajectory and two calls each, `size` at a time."""
    for start in range(first, first + count, size):
        keys = range(start, min(start + size, first + count))
        receipt = book.append(
            [sample(key) for key in keys],
            trajectories=[trajectory(key) for key in keys],
            calls=[call(f"{key}-{nth}", key) for key in keys for nth in range(2)],
        )
        yield {"added": receipt.added, "duplicates": receipt.duplicates}


def append_bare(book: Book, *, first: int, count: int, size: int) -> Iterator[Row]:
    """Append samples without anything beside them."""
    for start in range(first, first + count, size):
        keys = range(start, min(start + size, first + count))
        yield {"added": book.append([sample(key) for key in keys]).added}


def assemble(
    book: Book, *, learner: str | None = None, batches: int | None = None
) -> Iterator[Row]:
    """Make batches until there is none, or so many."""
    made = 0
    while batches is None or made < batches:
        decided = book.assemble(learner)
        if decided.batch_id is None:
            return
        made += 1
        samples = book.batch(decided.batch_id).rows.column("sample_id").to_pylist()
        yield {"batch_id": decided.batch_id, "samples": samples}


def learn(book: Book, *, learner: str) -> Iterator[Row]:
    """Take batches and train on them until there is none."""
    for batch in book.batches(learner):
        samples = batch.rows.column("sample_id").to_pylist()
        yield {"batch_id": batch.batch_id, "samples": samples}
        yield {"acked": batch.batch_id, "is_first": book.ack(batch.batch_id).is_first}


def maintain(book: Book, *, rounds: int) -> Iterator[Row]:
    """Maintain the book again and again."""
    for _ in range(rounds):
        for done in book.maintain():
            yield {"table": done.table, "rows": done.rows}


def ask(book: Book, *, zone: str, name: str, each: list[Row]) -> Iterator[Row]:
    """Answer a named question once for each set of parameters, in a process of this zone."""
    os.environ["TZ"] = zone
    time.tzset()
    offset = datetime(2026, 1, 31, 23, 30, tzinfo=UTC).astimezone().utcoffset()
    yield {"hours_from_utc": (offset or timedelta()) / timedelta(hours=1)}
    for params in each:
        yield {"params": params, "rows": book.sql(name, **params).to_pylist()}


ROLES: dict[str, Callable[..., Iterator[Row]]] = {
    "append": append,
    "append_bare": append_bare,
    "ask": ask,
    "assemble": assemble,
    "learn": learn,
    "maintain": maintain,
}


@dataclass(frozen=True, slots=True)
class Part:
    """What a process is to play: a role of `ROLES` with its parameters, on which book, when."""

    role: str
    root: str
    settings: Row
    at: datetime | None
    given: Row


def play(line: Connection, part: Part) -> None:
    """Say that all is loaded, wait for a word, open the book (or make it) and play a part.

    Whoever started this process gets each result through the line.
    """
    clock = FakeClock(part.at) if part.at else system_clock
    line.send({"ready": True})
    line.recv()
    with Book.create(part.root, Settings.model_validate(part.settings), clock=clock) as book:
        for result in ROLES[part.role](book, **part.given):
            line.send(result)
