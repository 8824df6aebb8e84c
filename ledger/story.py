"""How a batch came to be: one sentence made of numbers, from what its pass noted.

Every pass that met a new blocker left a row. Those between two batches of a stream tell what
the later one waited for, since when, and how many turns it was short of at that time.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from ..store import Decision
from .postmortem import stamp

# What may still enter a later batch; the other reasons of a funnel keep samples out for good.
_HOLDING = ("failure_quota", "truncation_line", "awaiting_reward", "group_open", "unpublished")


@dataclass(frozen=True, slots=True)
class Wait:
    """A blocker that a batch met before it was made.

    Attributes:
        blocker: short, no_gradient or least_share.
        since: when a pass first met it.
        missing_turns: turns that the batch was short of then.
        held: turns that were held or waiting then, by reason, most first.
    """

    blocker: str
    since: datetime
    missing_turns: int
    held: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Story:
    """How a batch came to be: a sentence, what it waited for, its funnel, and its pass."""

    sentence: str
    batch_id: str
    decided_at: datetime
    waits: tuple[Wait, ...]
    funnel: tuple[dict[str, Any], ...]
    table_versions: Mapping[str, int]
    settings_fingerprint: str


def tell(decision: Decision) -> Story:
    """Return the story of a batch."""
    noted = decision.header
    waits = tuple(_wait(row) for row in decision.waits)
    return Story(
        sentence=_sentence(decision, waits),
        batch_id=decision.batch_id,
        decided_at=noted["decided_at"],
        waits=waits,
        funnel=tuple(json.loads(noted["funnel"])),
        table_versions=json.loads(noted["table_versions"]),
        settings_fingerprint=noted["settings_fingerprint"],
    )


def _wait(row: Mapping[str, Any]) -> Wait:
    funnel = json.loads(row["funnel"])
    ready = sum(each["turns"] for each in funnel if each["step"] == "ready")
    held: dict[str, int] = {}
    for each in funnel:
        if each["reason"] in _HOLDING:
            held[each["reason"]] = held.get(each["reason"], 0) + each["turns"]
            # What a line holds is counted among the ready ones too.
            ready -= each["turns"] if each["step"] == "held" else 0
    return Wait(
        row["blocker"],
        row["decided_at"],
        max(row["target_turns"] - ready, 0),
        tuple(sorted(held.items(), key=lambda item: (-item[1], item[0]))),
    )


def _sentence(decision: Decision, waits: tuple[Wait, ...]) -> str:
    noted = decision.header
    partial = ", on purpose short," if noted["is_partial"] else ""
    parts = [
        f"{decision.batch_id} was made{partial} at {stamp(noted['decided_at'])} with"
        f" {noted['turns']} turns of {noted['target_turns']} in {noted['samples']} samples"
    ]
    parts += [f"{', '.join(noted['unmet'])} below the least share"] if noted["unmet"] else []
    if not waits:
        return "; ".join([*parts, "no pass found it blocked before"])
    return "; ".join([*parts, _told(waits, noted["decided_at"])])


def _told(waits: Sequence[Wait], until: datetime) -> str:
    """Return what a batch waited for last, and since when without a break."""
    wait = waits[-1]
    run = takewhile(lambda each: each.blocker == wait.blocker, reversed(waits))
    since = min(each.since for each in run)
    blocked = {
        "short": f"short by {wait.missing_turns} turns",
        "no_gradient": "without a gradient",
        "least_share": "below a least share",
    }[wait.blocker]
    seconds = (until - since).total_seconds()
    held = ", ".join(f"{turns} {reason}" for reason, turns in wait.held)
    told = f"for {seconds:,.0f} s before, it was {blocked}, since {stamp(since)}"
    return f"{told} (turns held: {held})" if held else told
