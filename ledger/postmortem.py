"""Why didn't this batch move: one sentence made of numbers.

The facts come from the same pipeline that makes batches, run without committing. From them
three lists of blockers follow:

1. what stops a batch that is there: nobody acks or takes the last one, or a full one is not made;
2. what keeps turns out, each with the turns that it keeps out: the quotas and whatever still
   has to come in (held), and what was lost since the last batch (gate, evidence, broken
   environments, the discard line). Losses that a sample's longest wait would have ended by now
   do not count;
3. the supply: who produces, and what may still come.

The verdict is the first that explains the stall. Something of the first list always does. Of
the second a blocker does if its turns alone could have filled what is missing, the largest
first; or several together, named until their turns suffice. If all of them could not, the
supply is the cause. So a refusal of 25 turns is never blamed for a lack of 40.

A row that was refused may not say how many turns it would have brought, and a broken rollout
can't know. Each counts as much as a ready sample has on average; where none is ready, they
could have filled all that is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..store import Facts

# What to do about a blocker, by its name.
ADVICE = {
    "learner_not_acking": "ack or release the batch; after its lease the next learner gets it",
    "not_taken": "start a learner: it gets this batch first",
    "ready": "assemble: a batch can be made now",
    "no_gradient": "see which task types are too easy or too hard, or wait for other rewards",
    "least_share": "wait, or lower the least share of the strata named",
    "failure_quota": "raise failure_share, or submit easier tasks of the types named",
    "truncation_line": "raise truncated_share, or the limits that cut rollouts short",
    "unpublished": "publish the weight versions that made these samples",
    "awaiting_reward": "settle the rewards that are awaited",
    "group_open": "wait for the groups to settle, or lower settle_seconds",
    "gate": "mend the producer so that its rows pass the gate",
    "evidence_missing": "make the producer record what is missing",
    "broken": "mend the environments, or give them more time",
    "discard_line": "raise the line of the class, publish fewer versions, or take batches sooner",
    "flat": "submit tasks of another difficulty, or set groups.flat to keep",
    "group_incomplete": "lower min_members, raise settle_seconds, or mend what loses members",
    "oversize": "raise max_unit_turns, or limit the turns of a rollout",
    "empty": "start rollouts, and send heartbeats",
    "no_reports": "make producers send heartbeats, or start rollouts",
    "producers_dead": "restart the producers",
    "exhausted": "add tasks, or set end.policy to flush_partial",
    "in_flight": "start more rollouts at once",
    "waiting": "nothing: what is in flight may fill the batch",
}
_FLUSH = "assemble: the data have ended, and a short batch can be made now"
_FLUSHED = "add tasks; a short batch can be made once all in flight has ended"

# Reason of a discard → the blocker that it counts for, and how that is called.
_DISCARDING = {
    "age_versions": ("discard_line", "the discard line"),
    "wait_seconds": ("discard_line", "the discard line"),
    "sibling": ("discard_line", "the discard line"),
    "flat": ("flat", "groups whose rewards are all equal"),
    "group_incomplete": ("group_incomplete", "groups that lack members"),
    "wait_exceeded": ("group_incomplete", "groups that lack members"),
    "group_extra": ("group_incomplete", "groups that lack members"),
    "oversize": ("oversize", "max_unit_turns"),
}
_TELLING = ("flat", "oversize")
_SUPPLY = ("in_flight", "no_reports", "exhausted", "waiting")
_MOST_TYPES = 3


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps the batch from moving.

    Attributes:
        name: which kind of thing, a key of `ADVICE`.
        turns: turns that it keeps out; None where it is not a matter of turns.
        text: the same in words, with its figures.
        since: since when, if that is known.
    """

    name: str
    turns: int | None
    text: str
    since: datetime | None = None

    def __str__(self) -> str:
        """Return it as it stands in a sentence."""
        return f"{self.text} since {stamp(self.since)}" if self.since else self.text


@dataclass(frozen=True, slots=True)
class Postmortem:
    """The answer.

    Attributes:
        sentence: what is missing, what keeps it out, and since when.
        verdict: the name of the first blocker in it.
        target_turns: turns that complete a batch.
        ready_turns: turns that could enter it.
        missing_turns: turns that it is short of.
        blockers: everything that was found: what explains the stall, then the rest.
        advice: what to do.
        also: what else is known: the other blockers, open incidents, as sentences.
        funnel: samples and turns by step, reason and task type.
    """

    sentence: str
    verdict: str
    target_turns: int
    ready_turns: int
    missing_turns: int
    blockers: tuple[Blocker, ...]
    advice: str
    also: tuple[str, ...] = field(default=())
    funnel: tuple[dict[str, Any], ...] = field(default=())


def explain(facts: Facts) -> Postmortem:
    """Return why the next batch does not move, from facts alone."""
    missing = max(facts.target_turns - facts.ready_turns, 0)
    stopping = [*_unacked(facts), *(() if missing else _of_full_batch(facts))]
    keeping = sorted(
        [*_holding(facts), *_losing(facts, missing)], key=lambda b: b.turns or 0, reverse=True
    )
    supply = list(_supply(facts, missing)) if missing else []
    chosen = stopping[:1] or _sufficing(keeping, missing) or supply[:1]
    others = [b for b in (*stopping, *keeping, *supply) if b not in chosen]
    tail = _tail(facts, chosen[0], supply)
    return Postmortem(
        sentence=_sentence(facts, missing, chosen, tail),
        verdict=chosen[0].name,
        target_turns=facts.target_turns,
        ready_turns=facts.ready_turns,
        missing_turns=missing,
        blockers=(*chosen, *others),
        advice=_advice(facts, chosen),
        also=tuple(_also(facts, others, tail)),
        funnel=tuple(facts.funnel),
    )


def stamp(moment: datetime) -> str:
    """Return a moment as it stands in a sentence."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# -- the verdict ---------------------------------------------------------------------------------


def _sufficing(keeping: Sequence[Blocker], missing: int) -> list[Blocker]:
    """Return the fewest blockers whose turns fill what is missing, the largest first.

    A row may break several rules, so of each name only the largest counts.
    """
    if keeping and (keeping[0].turns or 0) >= missing:
        return [keeping[0]]
    largest: dict[str, Blocker] = {}
    for blocker in keeping:
        largest.setdefault(blocker.name, blocker)
    named, turns = [], 0
    for blocker in largest.values():
        named.append(blocker)
        turns += blocker.turns or 0
        if turns >= missing:
            return named
    return []


def _sentence(facts: Facts, missing: int, chosen: Sequence[Blocker], tail: Sequence[str]) -> str:
    target = f"{facts.target_turns:,}"
    short = [f"short by {_counted(missing, 'turn')} of {target}"] if missing else []
    return "; ".join([*short, *map(str, chosen), *tail])


def _tail(facts: Facts, first: Blocker, supply: Sequence[Blocker]) -> list[str]:
    """Return what a verdict on the supply adds: that it has ended, or when it last came."""
    if first.name == "producers_dead":
        return [b.text for b in supply if b.name == "exhausted"]
    return [_arrival(facts)] if first.name in _SUPPLY else []


def _arrival(facts: Facts) -> str:
    arrived = facts.last_arrival_at
    return f"last sample arrived {stamp(arrived)}" if arrived else "no sample ever arrived"


def _advice(facts: Facts, chosen: Sequence[Blocker]) -> str:
    if chosen[0].name in ("producers_dead", "exhausted") and _may_flush(facts):
        return _FLUSH
    if chosen[0].name == "exhausted" and facts.end_policy == "flush_partial":
        return _FLUSHED
    return "; ".join(dict.fromkeys(ADVICE[blocker.name] for blocker in chosen))


def _may_flush(facts: Facts) -> bool:
    has_ended = facts.supply["is_exhausted"] and not facts.supply["in_flight"]
    return bool(has_ended and facts.end_policy == "flush_partial" and facts.ready_turns)


def _also(facts: Facts, others: Sequence[Blocker], tail: Sequence[str]) -> Iterator[str]:
    """Yield what the sentence leaves out."""
    yield from (str(blocker) for blocker in others if blocker.text not in tail)
    if facts.supply["is_exhausted"] and facts.blocker == "short" and facts.ready_turns:
        ready = _counted(facts.ready_turns, "turn")
        fate = f"the next pass flushes {ready}" if _may_flush(facts) else f"{ready} wait"
        yield f"end.policy is {facts.end_policy}: {fate}"
    yield from (
        f"batch {b['batch_id']} is held by {b['learner']} until {stamp(b['lease_until'])}"
        for b in facts.unacked
        if b["lease_until"] and b["lease_until"] > facts.now
    )
    if facts.blocker == "short" and _arrival(facts) not in tail:
        yield _arrival(facts)
    for row in facts.incidents:
        yield f"incident {row['kind']} of {row['subject']} open since {stamp(row['opened_at'])}"


# -- what stops a batch that is there ------------------------------------------------------------


def _unacked(facts: Facts) -> Iterator[Blocker]:
    """Yield the oldest batch that a learner should have acked; one that it may hold is none.

    While a lease runs its holder is to blame only if the next batch is ready behind it.
    """
    is_ready = facts.ready_turns >= facts.target_turns and facts.blocker is None
    late = [b for b in facts.unacked if not b["lease_until"] or b["lease_until"] <= facts.now]
    found = list(facts.unacked) if is_ready else late
    for batch in found[:1]:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        name = f"batch {batch['batch_id']} ({_counted(batch['turns'], 'turn')})"
        if batch["learner"]:
            text = f"{name} is held by {batch['learner']}, not acked{more}"
            yield Blocker("learner_not_acking", None, text, batch["assembled_at"])
        else:
            text = f"{name} waits for a learner to take it{more}"
            yield Blocker("not_taken", None, text, batch["assembled_at"])


def _of_full_batch(facts: Facts) -> Iterator[Blocker]:
    ready = _counted(facts.ready_turns, "turn")
    if facts.blocker == "no_gradient":
        sides = " and ".join(facts.flat_sides).replace("_", " ")
        text = f"{ready} are ready, but their rewards are all equal ({sides})"
        yield Blocker("no_gradient", None, text, facts.enough_since)
    elif facts.blocker == "least_share":
        text = f"{ready} are ready, but {', '.join(facts.unmet)} below the least share"
        yield Blocker("least_share", None, text, facts.enough_since)
    else:
        text = f"{ready} are ready and nobody assembles"
        yield Blocker("ready", None, text, facts.enough_since)


# -- what keeps turns out ------------------------------------------------------------------------


def _holding(facts: Facts) -> Iterator[Blocker]:
    """Yield what the pipeline holds back, by reason."""
    versions = f"{facts.current_version}, the newest published (up to {facts.stamped_version})"
    words = {
        "failure_quota": "the failure quota holds {turns} of {types}",
        "truncation_line": "the truncation line holds {turns} of {types}",
        "unpublished": f"{{turns}} were made by weights above {versions}",
        "awaiting_reward": "{turns} in {samples} await their reward",
        "group_open": "{turns} stand in groups that have not settled",
    }
    for reason, rows in by_key(facts.held, "reason").items():
        since = facts.last_published_at if reason == "unpublished" else _first(rows, "since")
        figures = {
            "turns": _counted(_total(rows, "turns"), "turn"),
            "samples": _counted(_total(rows, "samples"), "sample"),
            "types": _types(rows),
        }
        yield Blocker(reason, _total(rows, "turns"), words[reason].format(**figures), since)


def _losing(facts: Facts, missing: int) -> Iterator[Blocker]:
    """Yield what kept samples out for good."""
    for row in facts.refused:
        text = f"gate: {row['field']} {row['rule']} × {row['samples']:,}"
        turns = _worth(facts, row["turns"], row["unstated"], missing)
        yield Blocker("gate", turns, text, row["first_at"])
    for row in facts.lacking:
        text = f"gate: {row['gap']} missing × {row['samples']:,}"
        unstated = 0 if row["turns"] else row["samples"]
        turns = _worth(facts, row["turns"], unstated, missing)
        yield Blocker("evidence_missing", turns, text, row["first_at"])
    for row in facts.broken:
        text = f"{row['status']} × {row['samples']:,}, never trained on"
        # What a broken rollout states is only how far it came.
        turns = max(_worth(facts, 0, row["samples"], 0), row["turns"]) or missing
        yield Blocker("broken", turns, text, row["first_at"])
    yield from _discarding(facts)


def _worth(facts: Facts, stated: int, unstated: int, missing: int) -> int:
    """Return the turns that lost samples would have brought; `missing` where nothing tells."""
    ready = [row for row in facts.funnel if row["step"] == "ready"]
    turns, samples = _total(ready, "turns"), _total(ready, "samples")
    return stated + (unstated * turns // samples if samples else 0) or missing


def _discarding(facts: Facts) -> Iterator[Blocker]:
    """Yield the discards: those made since the last batch, and those that a pass would make."""
    due = [row for row in facts.funnel if row["step"] == "discarded"]
    named: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in (*facts.discarded, *due):
        kind = _DISCARDING.get(row["reason"], ("discard_line", "the discard line"))
        named.setdefault(kind, []).append(row)
    for (name, words), rows in named.items():
        most = max(rows, key=lambda row: row["turns"])
        turns = _total(rows, "turns")
        is_mixed = len({(row["task_type"], row["reason"]) for row in rows}) > 1
        whose = f"{', most' if is_mixed else ''} of {most['task_type']}"
        # Where the words say it, the reason is not said again.
        why = "" if name in _TELLING else f" for {most['reason']}"
        text = f"{words} took {_counted(turns, 'turn')}{whose}{why}"
        yield Blocker(name, turns, text, _first(rows, "first_at"))


def by_key(rows: Sequence[Mapping[str, Any]], key: str) -> dict[Any, list[Mapping[str, Any]]]:
    """Return rows by the value of a column."""
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def _total(rows: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)


def _first(rows: Sequence[Mapping[str, Any]], name: str) -> datetime | None:
    return min((row[name] for row in rows if row.get(name)), default=None)


def _types(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the task types of rows, those of most turns first; of many only the first."""
    most = sorted(rows, key=lambda row: (-row["turns"], row["task_type"]))
    names = list(dict.fromkeys(row["task_type"] for row in most))
    more = len(names) - _MOST_TYPES
    return ", ".join(names[:_MOST_TYPES]) + (f" and {more} more" if more > 0 else "")


# -- the supply ----------------------------------------------------------------------------------


def _supply(facts: Facts, missing: int) -> Iterator[Blocker]:
    """Yield what is wrong with the supply, or that it may yet suffice; at least one."""
    supply, coming = facts.supply, facts.supply["in_flight_turns"]
    if not supply["producers"]:
        is_empty = facts.last_arrival_at is None and not facts.refused
        words = (
            "nothing was ever submitted" if is_empty else "no producer reports what it is making"
        )
        yield Blocker("empty" if is_empty else "no_reports", None, words)
        return
    is_enough = supply["live"] and (coming is None or coming >= missing)
    if not supply["live"]:
        yield Blocker("producers_dead", None, "no live producer", supply["last_beat_at"])
    if supply["is_exhausted"] and not is_enough:
        yield Blocker("exhausted", None, "source exhausted", supply["exhausted_at"])
    if supply["live"] and not is_enough and (coming or not supply["is_exhausted"]):
        text = f"not enough samples in flight ({coming:,} of {_counted(missing, 'turn')})"
        yield Blocker("in_flight", None, text)
    if is_enough:
        known = "turns not reported" if coming is None else _counted(coming, "turn")
        text = f"{_counted(supply['in_flight'], 'sample')} in flight ({known})"
        yield Blocker("waiting", None, text)
