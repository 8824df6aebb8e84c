"""A book in a folder of its own, a clock that stands still, rows, and processes to kill."""

import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from rollbook.store.book import Book
from rollbook.store.clock import Clock
from rollbook.store.settings import Settings, StorageSettings

if TYPE_CHECKING:
    from tests.store.workers import store_worker as worker
else:
    sys.path.append(str(Path(__file__).parent / "workers"))
    import store_worker as worker

# Processes are forked from one that has everything loaded (pandas too, which pyarrow takes in
# where it is installed): a second and a half less for each.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "pandas", worker.__name__])

Row = dict[str, Any]
FakeClock = worker.FakeClock


class Make(Protocol):
    """Makes a row: plain but for the changes."""

    def __call__(self, key: object, **changes: Any) -> Row:
        """Return the row."""
        ...


class MakeCall(Protocol):
    """Makes a call that the sample `owner` made."""

    def __call__(self, key: object, owner: object, **changes: Any) -> Row:
        """Return the row."""
        ...


class Rows(Protocol):
    """The rows that tests use, for fixtures of more than one test."""

    FakeClock: type[FakeClock]
    sample: Make
    trajectory: Make
    call: MakeCall
    append: Callable[..., Iterator[Row]]


class OpenBook(Protocol):
    """Opens the test's book once more, under settings given by section."""

    def __call__(self, *, clock: Clock | None = None, **sections: Row) -> Book:
        """Return the book."""
        ...


class Worker:
    """A process that has the book open; see workers/store_worker.py for what it can do."""

    def __init__(self, part: worker.Part) -> None:
        self._line, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=worker.play, args=(theirs, part), daemon=True)
        self._process.start()
        theirs.close()

    def ready(self) -> None:
        """Wait until it has everything loaded."""
        assert self.line() == {"ready": True}

    def go(self) -> None:
        """Let it begin."""
        self._line.send("go")

    def line(self) -> Row:
        """Wait for its next result; empty if it is gone."""
        try:
            return dict(self._line.recv())
        except (EOFError, OSError):
            return {}

    def lines(self) -> list[Row]:
        """Wait for its end and return all other results."""
        return list(iter(self.line, {}))

    def results(self) -> list[Row]:
        """Wait for its end, which must be a good one, and return all other results."""
        lines = self.lines()
        self._process.join()
        assert self._process.exitcode == 0
        return lines

    def run_until(self, lines: int, seconds: float) -> list[Row]:
        """Let it begin, wait for so many results and so long after, and kill it."""
        self.go()
        told = [line for _ in range(lines) if (line := self.line())]
        time.sleep(seconds)
        return told + self.kill()

    def kill(self) -> list[Row]:
        """Kill it, with no chance to tidy up; return what it said until then."""
        if self._process.is_alive():  # else its number may be another process's by now
            self._process.kill()
        self._process.join()
        return self.lines()


class Start(Protocol):
    """Starts a process that plays a role."""

    def __call__(
        self, role: str, *, settings: Row | None = None, at: datetime | None = None, **given: Any
    ) -> Worker:
        """Return it, ready to go."""
        ...


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "book"


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty book, to be copied: that is quicker than to make one."""
    path = tmp_path_factory.mktemp("blank") / "book"
    Book.create(path).close()
    return path


@pytest.fixture
def open_book(root: Path, blank: Path, clock: FakeClock) -> Iterator[OpenBook]:
    opened: list[Book] = []
    own = clock

    def open_once_more(*, clock: Clock | None = None, **sections: Row) -> Book:
        settings = Settings.model_validate({"batch": {"turns": 100}} | sections)
        if not root.exists() and settings.storage == StorageSettings():
            shutil.copytree(blank, root)
        enter = Book.open if root.exists() else Book.create
        opened.append(enter(root, settings, clock=clock or own))
        return opened[-1]

    yield open_once_more
    for book in opened:
        book.close()


@pytest.fixture
def book(open_book: OpenBook) -> Book:
    return open_book()


@pytest.fixture(scope="session")
def rows() -> Rows:
    return worker


@pytest.fixture(scope="session")
def sample() -> Make:
    return worker.sample


@pytest.fixture
def trajectory() -> Make:
    return worker.trajectory


@pytest.fixture
def call() -> MakeCall:
    return worker.call


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    started: list[Worker] = []

    def one(
        role: str, *, settings: Row | None = None, at: datetime | None = None, **given: Any
    ) -> Worker:
        named = {"batch": {"turns": 100}} if settings is None else settings
        started.append(Worker(worker.Part(role, str(root), named, at, given)))
        return started[-1]

    yield one
    for each in started:
        each.kill()


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Tell the figures of a campaign on the terminal, whether it passes or not."""

    def tell(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")
            sys.stdout.flush()

    return tell


@pytest.fixture
def together() -> Callable[[list[Worker]], list[list[Row]]]:
    """Let processes begin at the same moment, and return what each came to."""

    def run(workers: list[Worker]) -> list[list[Row]]:
        for each in workers:
            each.ready()
        for each in workers:
            each.go()
        return [each.results() for each in workers]

    return run
