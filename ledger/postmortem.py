"""Why didn't this batch move: one sentence made of numbers.

The facts come from the same pipeline that makes batches, run without committing. From them a
list of blockers follows, each with the turns that it keeps out and since when; the verdict
is the first of those that alone explains the stall.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..store.facts import Facts

# What to do about a blocker, by its name.
ADVICE = {
    "learner_not_acking": "ack or release the batch, or wait for its lease to run out",
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
    "discard_line": "raise the line of the class, or make fewer versions in a rollout's time",
    "producers_dead": "restart the producers",
    "exhausted": "add tasks, or set end.policy to flush_partial",
    "in_flight": "start more rollouts at once",
    "waiting": "nothing: what is in flight may fill the batch",
}


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps the batch from moving.

    Attributes:
        name: which kind of thing, a key of `ADVICE`.
        turns: turns that it keeps out; None where that is not known.
        text: the same in words, with its figures.
        since: since when, if that is known.
    """

    name: str
    turns: int | None
    text: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Postmortem:
    """The answer: a sentence, the blockers behind it, the funnel, and what to do."""

    sentence: str
    verdict: str
    target_turns: int
    ready_turns: int
    missing_turns: int
    blockers: tuple[Blocker, ...]
    advice: str
    funnel: tuple[dict[str, Any], ...] = field(default=())


def explain(facts: Facts) -> Postmortem:
    """Return why the next batch does not move, from facts alone."""
    missing = max(facts.target_turns - facts.ready_turns, 0)
    blockers = tuple(_blockers(facts, missing))
    chosen = _verdict(blockers, missing)
    return Postmortem(
        sentence=_sentence(facts, missing, chosen, blockers),
        verdict=chosen.name,
        target_turns=facts.target_turns,
        ready_turns=facts.ready_turns,
        missing_turns=missing,
        blockers=blockers,
        advice=ADVICE[chosen.name],
        funnel=tuple(facts.funnel),
    )


def _sentence(facts: Facts, missing: int, chosen: Blocker, blockers: Sequence[Blocker]) -> str:
    parts = [f"short by {missing} turns of {facts.target_turns}"] if missing else []
    parts.append(_told(chosen))
    if chosen.name == "producers_dead":
        parts += [b.text for b in blockers if b.name == "exhausted"]
    return "; ".join(parts)


def _told(blocker: Blocker) -> str:
    return f"{blocker.text} since {stamp(blocker.since)}" if blocker.since else blocker.text


def stamp(moment: datetime) -> str:
    """Return a moment as it stands in a sentence."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def _verdict(blockers: Sequence[Blocker], missing: int) -> Blocker:
    """Return the first blocker that explains the stall: alone it holds what is missing.

    If none does, the one that holds most, unless supply is the cause.
    """
    for blocker in blockers:
        if blocker.turns is None or blocker.turns >= max(missing, 1):
            return blocker
    return max(blockers, key=lambda blocker: blocker.turns or 0)


def _blockers(facts: Facts, missing: int) -> Iterator[Blocker]:
    """Yield all blockers: of a full batch, what holds turns back, then the supply."""
    yield from _unacked(facts)
    if not missing:
        yield from _of_full_batch(facts)
    yield from _holding(facts)
    yield from _refusing(facts, missing)
    yield from _supply(facts, missing)


def _unacked(facts: Facts) -> Iterator[Blocker]:
    """Yield the batch that a learner should have acked; one that it may hold is no blocker.

    While a lease runs its holder is to blame only if the next batch is ready behind it.
    """
    is_ready = facts.ready_turns >= facts.target_turns and facts.blocker is None
    late = [b for b in facts.unacked if not b["lease_until"] or b["lease_until"] <= facts.now]
    for batch in (facts.unacked if is_ready else late)[:1]:
        holder = batch["learner"] or "nobody"
        text = f"batch {batch['batch_id']} ({batch['turns']} turns) is held by {holder}, not acked"
        yield Blocker("learner_not_acking", None, text, batch["assembled_at"])


def _of_full_batch(facts: Facts) -> Iterator[Blocker]:
    if facts.blocker == "no_gradient":
        text = f"{facts.ready_turns} turns are ready, but their rewards are all equal"
        yield Blocker("no_gradient", None, text, facts.enough_since)
    elif facts.blocker == "least_share":
        text = f"{', '.join(facts.unmet)} below the least share"
        yield Blocker("least_share", None, text, facts.enough_since)
    else:
        text = f"{facts.ready_turns} turns are ready and nobody assembles"
        yield Blocker("ready", None, text, facts.enough_since)


def _holding(facts: Facts) -> Iterator[Blocker]:
    """Yield what the pipeline holds back, most turns first."""
    words = {
        "failure_quota": "the failure quota holds {turns} turns of {types}",
        "truncation_line": "the truncation line holds {turns} turns of {types}",
        "unpublished": "{turns} turns were made by weights that are not published",
        "awaiting_reward": "{turns} turns in {samples} samples await their reward",
        "group_open": "{turns} turns stand in groups that have not settled",
    }
    sums = summed(facts.funnel)
    for reason in sorted(words, key=lambda reason: -sums.get(reason, {}).get("turns", 0)):
        if reason in sums:
            found = sums[reason]
            yield Blocker(reason, found["turns"], words[reason].format(**found))


def summed(funnel: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return samples, turns and the task types of a funnel's rows, by reason."""
    sums: dict[str, dict[str, Any]] = {}
    for row in funnel:
        found = sums.setdefault(row["reason"], {"samples": 0, "turns": 0, "named": []})
        found["samples"] += row["samples"]
        found["turns"] += row["turns"]
        found["named"].append(row["task_type"])
    for found in sums.values():
        found["types"] = ", ".join(sorted(set(found.pop("named"))))
    return sums


def _refusing(facts: Facts, missing: int) -> Iterator[Blocker]:
    """Yield what kept samples out for good: the gate, missing evidence, the discard line."""
    for row in facts.refused[:1]:
        text = f"gate: {row['field']} {row['rule']} × {row['samples']}"
        yield Blocker("gate", facts.turns_of_refused or missing, text, row["first_at"])
    for row in facts.lacking[:1]:
        text = f"gate: {row['gap']} missing × {row['samples']}"
        yield Blocker("evidence_missing", row["turns"] or missing, text, row["first_at"])
    if facts.discarded:
        turns = sum(row["turns"] for row in facts.discarded)
        most = facts.discarded[0]
        text = (
            f"the discard line took {turns} turns, most of {most['task_type']} for {most['reason']}"
        )
        yield Blocker("discard_line", turns, text, min(r["first_at"] for r in facts.discarded))


def _supply(facts: Facts, missing: int) -> Iterator[Blocker]:
    supply = facts.supply
    if supply["producers"] and not supply["live"]:
        yield Blocker("producers_dead", None, "no live producer", supply["last_beat_at"])
    if supply["exhausted"]:
        yield Blocker("exhausted", None, "source exhausted", None)
    coming = supply["in_flight_turns"]
    if coming is not None and coming < missing:
        text = f"not enough samples in flight ({coming} of {missing} turns)"
        yield Blocker("in_flight", None, text, facts.last_arrival_at)
    text = f"{supply['in_flight']} samples in flight"
    yield Blocker("waiting", None, text, facts.last_arrival_at)
