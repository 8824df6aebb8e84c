"""Incidents open and close with what the passes find, each once, and the hooks are told."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook, Start, Worker

Row = dict[str, Any]
REPLAY = {"origin": "replay", "parent_sample_id": "s0", "environment_snapshot_id": "e"}
# Each notes what it is told as one line of a file that is named by its argument.
NOTE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


def incidents(book: Book, *kinds: str) -> list[tuple[str, str, bool]]:
    """Return kind, subject and whether it is open of incidents, in order of opening.

    Of all, or of these kinds alone.
    """
    rows = book.query("SELECT * FROM incident ORDER BY opened_at, incident_id").to_pylist()
    told = [(row["kind"], row["subject"], row["closed_at"] is None) for row in rows]
    return [found for found in told if not kinds or found[0] in kinds]


def figures(book: Book) -> Row:
    """Return the figures of the newest incident."""
    rows = book.query("SELECT figures FROM incident ORDER BY opened_at DESC LIMIT 1")
    return dict(json.loads(rows[0][0].as_py()))


def dead(sample: "Make", clock: "FakeClock", keys: range, **changes: Any) -> list[Row]:
    """Return samples whose environment broke, just now."""
    now = {"finished_at": clock.now, "started_at": clock.now, "status": "env_error"}
    return [sample(f"dead{key}", **now | changes) for key in keys]


def live(sample: "Make", clock: "FakeClock", keys: range, **changes: Any) -> list[Row]:
    """Return samples that may be trained on, just ended; four make a batch."""
    now = {"finished_at": clock.now, "started_at": clock.now}
    return [sample(f"live{key}", **now | changes) for key in keys]


# -- dead streak ---------------------------------------------------------------------------------


def test_f03_a_run_of_broken_environments_raises_an_alarm_and_goes_on(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    passes = []
    for start in range(0, 128, 32):
        clock.tick(60)
        book.append(dead(sample, clock, range(start, start + 32)))
        passes.append(book.assemble())
    made = passes[-1]
    told = incidents(book)
    clock.tick(60)
    book.append(live(sample, clock, range(4)))
    cured = book.assemble()

    assert [each.batch_id for each in passes] == [None] * 4
    assert (made.pending_turns, made.missing_turns) == (0, 100)
    assert (made.dead_streak, made.dead_reasons) == (128, "env_error × 128")
    assert told == [("dead_streak", "train", True)]
    assert (cured.samples, cured.turns, cured.dead_streak) == (4, 100, 0)
    assert incidents(book) == [("dead_streak", "train", False)]
    ledger = book.sql("ledger").to_pylist()
    assert sum(row["samples"] for row in ledger) == 132
    assert sum(row["env_seconds"] for row in ledger) == 132 * 60


@pytest.mark.parametrize(("count", "opened"), [(9, 0), (10, 1)])
def test_f03_the_alarm_opens_with_the_tenth_unusable_unit_in_a_row(
    book: Book, sample: "Make", clock: "FakeClock", count: int, opened: int
) -> None:
    book.append(live(sample, clock, range(1)))
    clock.tick(1)
    book.append(dead(sample, clock, range(count)))

    book.assemble()

    assert len(incidents(book)) == opened
    if opened:
        assert figures(book) == {"streak": 10, "reasons": "env_error × 10"}


def test_a_group_counts_once_in_a_streak_and_whatever_made_it_useless(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 2}, alarms={"dead_streak": 3})
    flat = live(sample, clock, range(4), reward=1.0)
    pairs = [row | {"group_id": f"g{nth // 2}"} for nth, row in enumerate(flat)]
    book.append(pairs)
    book.assemble()
    assert book.assemble().dead_streak == 2
    assert incidents(book, "dead_streak") == []
    clock.tick(1)
    book.append(dead(sample, clock, range(2), group_id="g9"))

    book.assemble()

    assert incidents(book, "dead_streak") == [("dead_streak", "train", True)]
    assert figures(book) == {"streak": 3, "reasons": "flat × 4, env_error × 2"}


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_streak_goes_on_though_each_pass_finds_new_groups_open_or_flat(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", overlap: int
) -> None:
    """What is open may still be of use, or not: it neither counts nor ends a streak."""
    book = open_book(groups={"size": 2}, alarms={"dead_streak": 3})
    streaks = []
    for nth in range(5):
        ended = [(nth, 0), (nth - overlap, 1)]
        book.append(
            [
                sample(f"{group}-{member}", group_id=f"g{group}", reward=1.0, finished_at=clock.now)
                for group, member in ended
                if group >= 0
            ]
        )
        streaks.append(book.assemble().dead_streak)
        clock.tick(60)

    assert streaks == [nth + 1 - overlap for nth in range(5)]
    assert incidents(book, "dead_streak") == [("dead_streak", "train", True)]


def test_a_streak_does_not_end_because_its_units_go_out_of_sight(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    """Passes that decide something move the low-water mark past what is an hour old."""
    book = open_book(groups={"size": 2}, alarms={"dead_streak": 3})
    for hour in range(4):
        flat = live(sample, clock, range(2), reward=1.0, group_id=f"g{hour}")
        book.append([row | {"sample_id": f"{row['sample_id']}-{hour}"} for row in flat])
        if hour == 0:
            clock.tick(1)
            book.append(dead(sample, clock, range(2), group_id="d0"))
            book.append(dead(sample, clock, range(2, 4), group_id="d1"))
        book.assemble()
        book.assemble()
        clock.tick(7200)

    assert book.assemble().dead_streak == 6
    assert incidents(book, "dead_streak") == [("dead_streak", "train", True)]


def test_a_streak_is_counted_over_days_in_which_one_group_ends_every_two_hours(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 50}, groups={"size": 2}, alarms={"dead_streak": 3})
    streaks = []
    for hour, rewards in enumerate([(1.0, 1.0)] * 4 + [(1.0, 0.0)] + [(0.0, 0.0)] * 2):
        members = live(sample, clock, range(2), group_id=f"g{hour}")
        book.append(
            [
                row | {"sample_id": f"{row['sample_id']}-{hour}", "reward": reward}
                for row, reward in zip(members, rewards, strict=True)
            ]
        )
        book.assemble()
        streaks.append(book.assemble().dead_streak)
        clock.tick(7200)

    assert streaks == [1, 2, 3, 4, 0, 1, 2]
    assert incidents(book, "dead_streak") == [("dead_streak", "train", False)]


def test_a_batch_that_comes_out_again_closes_nothing(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append(live(sample, clock, range(4)))
    book.assemble("a")
    clock.tick(1)
    book.append(live(sample, clock, range(4, 8), reward=1.0))
    clock.tick(1)
    book.append(dead(sample, clock, range(10)))
    book.assemble()
    clock.tick(3600)

    again = book.assemble("b")

    assert again.is_redelivered
    assert incidents(book) == [("dead_streak", "train", True), ("no_gradient", "train", True)]


def test_an_alarm_opens_again_after_it_was_closed(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    for turn in range(2):
        clock.tick(1)
        book.append(dead(sample, clock, range(turn * 10, turn * 10 + 10)))
        book.assemble()
        clock.tick(1)
        book.append(live(sample, clock, range(turn * 4, turn * 4 + 4)))
        book.assemble()

    assert incidents(book) == [("dead_streak", "train", False)] * 2


def test_incidents_of_two_streams_are_apart(book: Book, sample: "Make", clock: "FakeClock") -> None:
    book.append(dead(sample, clock, range(10), **REPLAY))
    book.assemble()
    assert incidents(book) == []
    book.assemble(stream="replay")
    clock.tick(1)
    book.append(live(sample, clock, range(4)))
    clock.tick(1)
    book.append(dead(sample, clock, range(10, 20)))
    book.assemble()
    told = incidents(book)
    clock.tick(1)
    book.append(live(sample, clock, range(5, 6), **REPLAY))
    book.assemble(stream="replay")

    assert told == [("dead_streak", "replay", True), ("dead_streak", "train", True)]
    assert incidents(book) == [("dead_streak", "replay", False), ("dead_streak", "train", True)]


# -- all refused ---------------------------------------------------------------------------------


def test_f01_arrivals_without_a_turn_are_refused_and_raise_an_alarm(
    book: Book, sample: "Make"
) -> None:
    receipt = book.append([sample(key, turns=0) for key in range(30)])

    made = book.assemble()

    assert (receipt.refused, dict(receipt.rules)) == (30, {"empty_trajectory": 30})
    assert (made.batch_id, made.pending_turns) == (None, 0)
    assert incidents(book) == [("all_refused", "gate", True)]
    assert figures(book) == {
        "arrivals": 30,
        "trainable_turns": 0,
        "rules": "empty_trajectory × 30",
    }


def test_f01_samples_of_zero_turns_neither_fill_a_batch_nor_stop_one(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(key, turns=0) for key in range(30)])
    book.assemble()
    clock.tick(1)
    book.append([sample(key) for key in range(30, 34)])

    made = book.assemble()

    assert (made.samples, made.turns, made.pending_turns) == (4, 100, 100)
    assert incidents(book) == [("all_refused", "gate", False)]


def test_rows_refused_beside_one_that_was_let_in_raise_no_alarm(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    clock.now = clock.now.replace(microsecond=999)
    rows = [sample(key, turns=int(key == 20)) for key in range(21)]
    book.append(rows)
    book.assemble()
    assert incidents(book) == []
    clock.tick(0.001)
    book.append([sample(f"next{key}", turns=0) for key in range(9)])
    book.assemble()
    assert incidents(book) == []
    book.append([sample("tenth", turns=0)])

    book.assemble()

    assert incidents(book) == [("all_refused", "gate", True)]


# -- no gradient ---------------------------------------------------------------------------------


def test_a_batch_without_gradient_opens_one_incident_which_the_next_batch_closes(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book()
    book.append(live(sample, clock, range(4), reward=1.0))
    blockers = [book.assemble().blocker for _ in range(3)]
    open_book().assemble()
    told, known = incidents(book), figures(book)
    clock.tick(1)
    book.reward([{"sample_id": "slive0", "reward": 0.0, "grader": "g", "rewarded_at": clock.now}])

    made = book.assemble()

    assert blockers == ["no_gradient"] * 3
    assert told == [("no_gradient", "train", True)]
    assert known == {"pending_turns": 100, "target_turns": 100}
    assert made.batch_id
    assert incidents(book) == [("no_gradient", "train", False)]


def test_a_flat_group_is_counted_on_its_side_with_all_other_reasons_kept(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 3, "min_members": 2})
    book.publish(10)
    rewards = {"easy": [1.0, 1.0, 0.0], "hard": [0.0, 0.0, 1.0]}
    for group, each in rewards.items():
        book.append(
            [
                sample(f"{group}{n}", group_id=group, reward=r, weight_version=10 if n < 2 else 5)
                for n, r in enumerate(each)
            ]
        )

    book.assemble()

    rows = book.query("SELECT sample_id, reasons FROM dispositions WHERE kind = 'discarded'")
    assert {row["sample_id"]: row["reasons"] for row in rows.to_pylist()} == {
        "seasy0": ["flat", "too_easy"],
        "seasy1": ["flat", "too_easy"],
        "seasy2": ["age_versions", "flat", "too_easy"],
        "shard0": ["flat", "too_hard"],
        "shard1": ["flat", "too_hard"],
        "shard2": ["age_versions", "flat", "too_hard"],
    }
    told = book.sql("interruptions").select(["side", "flat_groups", "flat_samples"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [("too_easy", 1, 3), ("too_hard", 1, 3)]


# -- starved types -------------------------------------------------------------------------------


def test_f13_a_type_that_loses_everything_is_told_until_one_of_it_is_assigned(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    """A new version every ten minutes: 5-minute tasks are fresh, 55-minute ones five behind."""
    book = open_book(batch={"turns": 2500}, discard={"max_age_versions": 4})
    book.publish(10)
    short = {"task_type": "short", "weight_version": 10, "env_seconds": 300.0}
    long = {"task_type": "long", "weight_version": 5, "env_seconds": 3_300.0}
    book.append(
        live(sample, clock, range(100), **short)
        + live(sample, clock, range(100, 120), **long)
        + live(sample, clock, range(120, 121), **short | {"weight_version": 5})
    )
    made = book.assemble()
    told, known = incidents(book), figures(book)
    clock.tick(60)
    fresh = long | {"weight_version": 10}
    book.append(live(sample, clock, range(200, 300), **short))
    book.append(live(sample, clock, range(300, 301), **fresh))
    book.assemble()

    assert (made.samples, made.discarded) == (100, 21)
    assert told == [("type_starved", "long", True)]
    assert known == {"task_type": "long", "discarded": 20, "turns": 500, "env_seconds": 66_000.0}
    assert incidents(book) == [("type_starved", "long", False)]


@pytest.mark.parametrize(("later", "opened"), [(3_600, 0), (3_600.000001, 1)])
def test_f13_what_was_assigned_counts_for_as_long_as_the_window_is(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", *, later: float, opened: int
) -> None:
    book = open_book(alarms={"type_starved_seconds": 3_600, "type_starved_samples": 1})
    book.publish(10)
    book.append(live(sample, clock, range(4), weight_version=10))
    assert book.assemble().batch_id
    clock.tick(later)
    book.append(live(sample, clock, range(9, 10), weight_version=5))

    book.assemble()

    assert len(incidents(book)) == opened


def test_a_type_is_not_called_starved_while_some_of_it_is_ready_for_the_first_batch(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(alarms={"type_starved_samples": 3})
    book.publish(10)
    book.append(live(sample, clock, range(3), weight_version=5))
    book.append(live(sample, clock, range(3, 4), weight_version=10, turns=99))

    made = book.assemble()

    assert (made.batch_id, made.discarded) == (None, 3)
    assert incidents(book, "type_starved") == []


def test_a_type_of_which_little_was_lost_so_far_is_not_called_starved(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book()
    book.publish(10)
    counts = []
    for nth in range(10):
        book.append(live(sample, clock, range(nth, nth + 1), weight_version=5))
        book.assemble()
        counts.append(len(incidents(book, "type_starved")))

    assert counts == [0] * 9 + [1]


def test_f13_with_a_cap_of_its_own_for_long_tasks_nothing_is_lost(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(duration_class={"long": {"max_age_versions": 6}})
    book.publish(10)
    long = {"task_type": "long", "duration_class": "long", "weight_version": 5}
    book.append(live(sample, clock, range(20), **long))

    made = book.assemble()

    assert (made.discarded, incidents(book)) == (0, [])


# -- several at once -----------------------------------------------------------------------------


def test_processes_that_settle_at_once_open_one_incident_and_tell_it_once(
    book: Book,
    sample: "Make",
    clock: "FakeClock",
    start: "Start",
    *,
    together: Callable[[list["Worker"]], list[list[Row]]],
    tmp_path: Path,
) -> None:
    book.append(dead(sample, clock, range(10)))
    note = tmp_path / "told"
    hook = [sys.executable, "-c", NOTE, str(note)]
    settings = {"batch": {"turns": 100}, "alarms": {"hook_command": hook}}
    at = clock.now + timedelta(seconds=1)

    together([start("assemble", settings=settings, at=at) for _ in range(4)])

    assert incidents(book) == [("dead_streak", "train", True)]
    assert len(note.read_text().splitlines()) == 1


def test_what_others_noted_meanwhile_is_neither_noted_nor_told_again(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note = tmp_path / "told"
    hook = [sys.executable, "-c", NOTE, str(note)]
    book = open_book(alarms={"hook_command": hook})
    book.append(dead(sample, clock, range(10)))
    book.assemble()
    late = open_book(alarms={"hook_command": hook})
    monkeypatch.setattr(late._alarms, "_known", list)

    late.assemble()

    assert book.query("SELECT event FROM incidents").num_rows == 1
    assert len(note.read_text().splitlines()) == 1


# -- what it costs -------------------------------------------------------------------------------


def test_a_pass_that_finds_nothing_new_asks_the_book_nothing(
    book: Book, sample: "Make", clock: "FakeClock", monkeypatch: pytest.MonkeyPatch
) -> None:
    book.append(dead(sample, clock, range(10)))
    book.append([sample(f"empty{key}", turns=0) for key in range(10)])
    clock.tick(1)
    for _ in range(2):
        book.assemble()
    asked: list[str] = []
    answer = book._alarms._ask

    def ask(name: str, params: Mapping[str, Any]) -> list[Row]:
        asked.append(name)
        return answer(name, params)

    monkeypatch.setattr(book._alarms, "_ask", ask)

    for _ in range(3):
        book.assemble()

    assert asked == []
    book.append([sample("one more", turns=0)])
    book.assemble()
    assert asked == ["alarm/refused"]


# -- hooks ---------------------------------------------------------------------------------------


class Server:
    """A web server that keeps what is posted to it, and answers with a status, after a while."""

    def __init__(self) -> None:
        self.bodies: list[Row] = []
        self.types: list[str | None] = []
        self.status = 200
        self.seconds = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append(json.loads(body))
                outer.types.append(self.headers["Content-Type"])
                time.sleep(outer.seconds)
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/incidents"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def open_and_close(book: Book, sample: "Make", clock: "FakeClock") -> None:
    """Let an incident open and close."""
    book.append(dead(sample, clock, range(10)))
    book.assemble()
    clock.tick(1)
    book.append(live(sample, clock, range(4)))
    book.assemble()


def test_hooks_get_each_opening_and_each_closing_once_as_json(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", server: Server, tmp_path: Path
) -> None:
    note = tmp_path / "told"
    hook = [sys.executable, "-c", NOTE, str(note)]
    book = open_book(alarms={"hook_command": hook, "hook_url": server.url})
    opened_at = clock.now.isoformat()

    open_and_close(book, sample, clock)
    book.assemble()

    first, second = server.bodies
    assert first == {
        "event_id": "dead_streak/train/0/opened",
        "incident_id": "dead_streak/train/0",
        "kind": "dead_streak",
        "subject": "train",
        "event": "opened",
        "at": opened_at,
        "figures": {"streak": 10, "reasons": "env_error × 10"},
    }
    assert (second["event_id"], second["event"]) == ("dead_streak/train/0/closed", "closed")
    assert server.types == ["application/json"] * 2
    assert [json.loads(line) for line in note.read_text().splitlines()] == server.bodies


HOOKS: dict[str, Row] = {
    "a command that fails": {"hook_command": [sys.executable, "-c", "raise SystemExit(3)"]},
    "a command that hangs": {
        "hook_command": [sys.executable, "-c", "import time; time.sleep(60)"],
        "hook_timeout_seconds": 0.2,
    },
    "a command that is not there": {"hook_command": ["no-such-command"]},
    "a command that cannot be": {"hook_command": ["a\0b"]},
    "an address without a server": {"hook_url": "http://127.0.0.1:9/"},
    "an address that is none": {"hook_url": "http://127.0.0.1:port/"},
}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_hook_that_fails_is_logged_and_changes_nothing(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    hook: Row,
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    book = open_book(alarms=hook)

    began = time.monotonic()
    open_and_close(book, sample, clock)

    assert time.monotonic() - began < 60
    assert incidents(book) == [("dead_streak", "train", False)]
    assert book.sql("batches").num_rows == 1
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(told) == 2
    assert all(t.startswith("a hook of incident dead_streak/train/0 failed: ") for t in told)


@pytest.mark.parametrize(("status", "seconds"), [(500, 0.0), (200, 0.6)])
def test_a_server_that_fails_or_hangs_is_logged_and_the_command_is_called_all_the_same(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    server: Server,
    caplog: pytest.LogCaptureFixture,
    *,
    status: int,
    seconds: float,
) -> None:
    server.status, server.seconds = status, seconds
    book = open_book(alarms={"hook_url": server.url, "hook_timeout_seconds": 0.3})

    open_and_close(book, sample, clock)

    while len(server.bodies) < 2:  # what hangs may read later than it was given up
        time.sleep(0.01)
    assert [body["event"] for body in server.bodies] == ["opened", "closed"]
    assert incidents(book) == [("dead_streak", "train", False)]
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 2


def test_a_command_that_fails_does_not_keep_the_address_from_being_told(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", server: Server
) -> None:
    book = open_book(alarms={"hook_command": ["no-such-command"], "hook_url": server.url})

    open_and_close(book, sample, clock)

    assert [body["event"] for body in server.bodies] == ["opened", "closed"]


def test_a_hook_is_called_when_the_pass_is_committed_and_the_incident_noted(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", root: Path, tmp_path: Path
) -> None:
    """The command looks into the book itself, from a process of its own."""
    seen = tmp_path / "seen"
    look = (
        "import sys; from rollbook.store import Book; b = Book.open(sys.argv[1]);"
        "n = b.query('SELECT (SELECT COUNT(*) FROM dispositions) AS d,"
        " (SELECT COUNT(*) FROM incidents) AS i').to_pylist()[0];"
        "open(sys.argv[2], 'a').write(f\"{n['d']} {n['i']}\\n\")"
    )
    hook = [sys.executable, "-c", look, str(root), str(seen)]
    book = open_book(alarms={"hook_command": hook})
    book.append(dead(sample, clock, range(10)))

    book.assemble()

    assert seen.read_text() == "1 1\n"
