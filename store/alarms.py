"""Alarms: incidents that open and close with what the passes find, and who is told.

An incident is told by kind and subject; while it is open it does not open again. Opening and
closing are rows of `incidents`, each noted once whoever notes it. A hook that fails is logged
and changes nothing: the book's word is the table.
"""

import json
import logging
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .clock import Clock
from .keyed import KeyedTable
from .passes import Pass
from .schema import declared_schema
from .settings import AlarmSettings

_HOOK_SECONDS = 10.0
_log = logging.getLogger("rollbook")


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
        settings: AlarmSettings,
        clock: Clock,
        ask: Callable[[str, Mapping[str, Any]], list[dict[str, Any]]],
    ) -> None:
        """Set up; `ask` answers a named statement over the whole book."""
        self._incidents = incidents
        self._past: tuple[int, list[dict[str, Any]]] = (-1, [])
        self._settings = settings
        self._clock = clock
        self._ask = ask

    def settle(self, made: Pass, stream: str) -> None:
        """Open and close incidents after a pass."""
        past = self._known()
        for signal in (*of_pass(made, stream, self._settings), *self._starved(made, past)):
            self._apply(signal, past)

    def _known(self) -> list[dict[str, Any]]:
        """Return all incidents, asked for again only when there are new ones."""
        version = self._incidents.table.snapshot().version
        if self._past[0] != version:
            self._past = (version, self._ask("alarm/incidents", {}))
        return self._past[1]

    def _starved(self, made: Pass, past: list[dict[str, Any]]) -> Iterator[Signal]:
        """Look for starved types, which takes a scan, only where something may have changed."""
        was_open = {row["subject"] for row in past if row["kind"] == "type_starved"}
        if not made.discarded and not was_open:
            return
        window = {"window_seconds": self._settings.type_starved_seconds}
        starved = {row["task_type"]: row for row in self._ask("alarm/starved", window)}
        for name in sorted(was_open | set(starved)):
            yield Signal("type_starved", name, name in starved, starved.get(name, {}))

    def _apply(self, signal: Signal, past: list[dict[str, Any]]) -> None:
        same = [r for r in past if (r["kind"], r["subject"]) == (signal.kind, signal.subject)]
        opened = next((row for row in same if row["closed_at"] is None), None)
        if signal.is_raised and opened is None:
            self._note(f"{signal.kind}/{signal.subject}/{len(same)}", "opened", signal)
        elif not signal.is_raised and opened is not None:
            self._note(opened["incident_id"], "closed", signal)

    def _note(self, incident_id: str, event: str, signal: Signal) -> None:
        row = {
            "event_id": f"{incident_id}/{event}",
            "incident_id": incident_id,
            "kind": signal.kind,
            "subject": signal.subject,
            "event": event,
            "at": self._clock(),
            "figures": json.dumps(dict(signal.figures), default=str),
        }
        rows = pa.Table.from_pylist([row], declared_schema("incidents"))
        if self._incidents.append_once(rows, ["event_id"]).fresh.num_rows:
            tell(self._settings, json.dumps(row, default=str))


def of_pass(made: Pass, stream: str, settings: AlarmSettings) -> Iterator[Signal]:
    """Yield what a pass says of its stream."""
    streak = {"streak": made.dead_streak, "reasons": made.dead_reasons}
    yield Signal("dead_streak", stream, made.dead_streak >= settings.dead_streak, streak)
    if made.batch_id or made.blocker == "no_gradient":
        figures = {"pending_turns": made.pending_turns, "target_turns": made.target_turns}
        yield Signal("no_gradient", stream, made.blocker == "no_gradient", figures)


def tell(settings: AlarmSettings, body: str) -> None:
    """Call the hooks with a JSON body; what goes wrong with them is logged."""
    try:
        if settings.hook_command:
            subprocess.run(  # noqa: S603 - the operator's own command
                settings.hook_command,
                input=body,
                text=True,
                check=True,
                timeout=_HOOK_SECONDS,
                capture_output=True,
            )
        if settings.hook_url:
            request = urllib.request.Request(  # noqa: S310 - settings allow http(s) only
                settings.hook_url,
                data=body.encode(),
                headers={"Content-Type": "application/json"},
            )
            urllib.request.urlopen(request, timeout=_HOOK_SECONDS).close()  # noqa: S310
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("an incident's hook failed: %s", error)
