"""Alarms: incidents that open and close with what the passes find, and who is told.

An incident is told by kind and subject; while it is open it does not open again. Opening and
closing are rows of `incidents`, each noted once whoever notes it. They are noted after the
pass is committed, and the hooks are called after that, by whoever noted it: at most once. A
hook that fails is logged and changes nothing: the book's word is the table.

A pass that finds nothing new asks the book nothing.
"""

import json
import logging
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any

import pyarrow as pa

from .clock import Clock
from .delta import Table
from .keyed import KeyedTable
from .passes import Pass
from .schema import TableName, declared_schema
from .settings import AlarmSettings

# Steps and reasons of a pass at which a sample was of use, were it only for a while.
_OF_USE = {"ready", "assigned"}
_OF_USE_ONCE = {"failure_quota", "truncation_line", "age_versions", "wait_seconds"}
# Delta cuts the times in its log to milliseconds.
_LOG_STEP = timedelta(milliseconds=1)
_log = logging.getLogger("rollbook")

Past = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Signal:
    """What is wrong or right with one subject just now."""

    kind: str
    subject: str
    is_raised: bool
    figures: Mapping[str, Any]


class Alarms:
    """Opens and closes incidents."""

    def __init__(
        self,
        incidents: KeyedTable,
        tables: Mapping[TableName, Table],
        settings: AlarmSettings,
        clock: Clock,
        ask: Callable[[str, Mapping[str, Any]], list[dict[str, Any]]],
    ) -> None:
        """Set up; `ask` answers a named statement over the whole book."""
        self._incidents = incidents
        self._tables = tables
        self._past: tuple[int, Past] = (-1, [])
        self._seen: tuple[int, int | None] = (0, None)
        self._settings = settings
        self._clock = clock
        self._ask = ask

    def settle(self, made: Pass, stream: str) -> None:
        """Open and close incidents after a pass; one that redelivers has judged nothing."""
        if made.is_redelivered:
            return
        past = self._known()
        of_pass_itself = of_pass(made, stream, self._settings)
        for signal in (*of_pass_itself, *self._starved(made, past), *self._refused(past)):
            self._apply(signal, past)

    def _known(self) -> Past:
        """Return all incidents, asked for again only when there are new ones."""
        version = self._incidents.table.snapshot().version
        if self._past[0] != version:
            # An empty table need not be asked.
            self._past = (version, self._ask("alarm/incidents", {}) if version else [])
        return self._past[1]

    def _starved(self, made: Pass, past: Past) -> Iterator[Signal]:
        """Look whether a type lost all, where a pass took from it and gave nothing of it."""
        were_starved = {row["subject"] for row in _open(past, "type_starved")}
        # Without a batch, what is ready is still to be assigned.
        fed = _types(made, "assigned" if made.batch_id else "ready")
        for name in sorted(were_starved & _types(made, "assigned")):
            yield Signal("type_starved", name, is_raised=False, figures={})
        suspects = _types(made, "discarded") - fed - were_starved
        if not suspects:
            return
        since = self._clock() - timedelta(seconds=self._settings.type_starved_seconds)
        for row in self._ask("alarm/starved", {"from_time": since}):
            is_enough = row["discarded"] >= self._settings.type_starved_samples
            if (name := row["task_type"]) in suspects and is_enough:
                cost = self._ask("alarm/lost", {"task_type": name, "from_time": since})[0]
                yield Signal("type_starved", name, is_raised=True, figures=row | cost)

    def _refused(self, past: Past) -> Iterator[Signal]:
        """Count what the gate refused since it last let a sample in, where that may be new."""
        refused, samples = (self._tables[n].snapshot() for n in ("quarantine", "samples"))
        is_open = bool(_open(past, "all_refused"))
        seen = (refused.version, samples.version if is_open else None)
        if seen == self._seen:
            return
        self._seen = seen
        # Of one delivery all rows have one time, so its own refusals do not count after it.
        newest: Any = samples.greatest("ingested_at")
        since = newest + _LOG_STEP if newest else None
        row = self._ask("alarm/refused", {"from_time": since})[0]
        is_raised = row["arrivals"] >= self._settings.dead_streak
        yield Signal("all_refused", "gate", is_raised, row | {"trainable_turns": 0})

    def _apply(self, signal: Signal, past: Past) -> None:
        same = [r for r in past if (r["kind"], r["subject"]) == (signal.kind, signal.subject)]
        opened = next((row for row in same if row["closed_at"] is None), None)
        if signal.is_raised and opened is None:
            self._note(f"{signal.kind}/{signal.subject}/{len(same)}", "opened", signal)
        elif not signal.is_raised and opened is not None:
            self._note(opened["incident_id"], "closed", signal)

    def _note(self, incident_id: str, event: str, signal: Signal) -> None:
        told = {
            "event_id": f"{incident_id}/{event}",
            "incident_id": incident_id,
            "kind": signal.kind,
            "subject": signal.subject,
            "event": event,
            "at": self._clock(),
        }
        row = told | {"figures": json.dumps(dict(signal.figures), ensure_ascii=False)}
        rows = pa.Table.from_pylist([row], declared_schema("incidents"))
        if self._incidents.append_once(rows, ["event_id"]).fresh.num_rows:
            tell(self._settings, told | {"figures": dict(signal.figures)})


def _open(past: Past, kind: str) -> Past:
    return [row for row in past if row["kind"] == kind and row["closed_at"] is None]


def _types(made: Pass, step: str) -> set[str]:
    return {entry["task_type"] for entry in made.funnel if entry["step"] == step}


def of_pass(made: Pass, stream: str, settings: AlarmSettings) -> Iterator[Signal]:
    """Yield what a pass says of its stream.

    A streak ends with a unit that was of use. That fewer dead ones are in sight than before
    does not end it: old ones go out of sight.
    """
    is_dead = made.dead_streak >= settings.dead_streak
    if is_dead or any(map(_was_of_use, made.funnel)):
        streak = {"streak": made.dead_streak, "reasons": made.dead_reasons}
        yield Signal("dead_streak", stream, is_dead, streak)
    if made.batch_id or made.blocker == "no_gradient":
        figures = {"pending_turns": made.pending_turns, "target_turns": made.target_turns}
        yield Signal("no_gradient", stream, made.blocker == "no_gradient", figures)


def _was_of_use(entry: Mapping[str, Any]) -> bool:
    return entry["step"] in _OF_USE or entry["reason"] in _OF_USE_ONCE


def tell(settings: AlarmSettings, incident: Mapping[str, Any]) -> None:
    """Call the hooks with an incident as JSON; what goes wrong with one is logged."""
    body = json.dumps(dict(incident), default=_spelled, ensure_ascii=False)
    for call in (_run, _post):
        try:
            call(settings, body)
        # An address or an answer may be wrong in more ways than the network fails.
        except (OSError, ValueError, HTTPException, subprocess.SubprocessError) as error:
            _log.warning("a hook of incident %s failed: %s", incident["incident_id"], error)


def _spelled(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _run(settings: AlarmSettings, body: str) -> None:
    if settings.hook_command:
        subprocess.run(  # noqa: S603 - the operator's own command
            settings.hook_command,
            input=body,
            text=True,
            check=True,
            timeout=settings.hook_timeout_seconds,
            stdout=subprocess.DEVNULL,
        )


def _post(settings: AlarmSettings, body: str) -> None:
    if settings.hook_url:
        request = urllib.request.Request(  # noqa: S310 - settings allow http(s) only
            settings.hook_url,
            data=body.encode(),
            headers={"Content-Type": "application/json"},
        )
        timeout = settings.hook_timeout_seconds
        urllib.request.urlopen(request, timeout=timeout).close()  # noqa: S310
