"""What a post-mortem is made of: the pipeline's result without a commit, and what surrounds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from .engine import Engine
from .settings import Settings


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known about the next batch of a stream.

    What was lost (refused, lacking, broken, discarded) is counted since the last batch, and no
    longer back than a sample may wait: what is older would be over the line by now.

    Attributes:
        now: the moment that the facts are of.
        target_turns: turns that complete a batch.
        ready_turns: turns that could enter it.
        blocker: what the pipeline says: short, no_gradient, least_share; None if it could go.
        unmet: strata below their least share.
        flat_sides: where nothing carries a gradient, too_easy or too_hard.
        enough_since: when the pending turns first sufficed.
        funnel: samples and turns by step, reason and task type.
        held: samples, turns and since by reason and task type: what may come in later.
        supply: producers, live, last_beat_at, is_exhausted, exhausted_at, in_flight,
            in_flight_turns.
        unacked: batches that were made and not acked.
        refused: rules that refused samples, most first.
        lacking: evidence that held samples lack, most first.
        broken: how executions ended that are never trained on, most first.
        discarded: discards by reason and task type, most turns first.
        incidents: open alarms of the stream and of task types.
        last_arrival_at: when the last sample came.
        current_version: the newest published weight version.
        last_published_at: when it was published.
        stamped_version: the newest weight version that made a sample.
        end_policy: what becomes of a short batch at the end of the data.
    """

    now: datetime
    target_turns: int
    ready_turns: int
    blocker: str | None
    unmet: Sequence[str]
    flat_sides: Sequence[str]
    enough_since: datetime | None
    funnel: Sequence[dict[str, Any]]
    held: Sequence[Mapping[str, Any]]
    supply: Mapping[str, Any]
    unacked: Sequence[Mapping[str, Any]]
    refused: Sequence[Mapping[str, Any]]
    lacking: Sequence[Mapping[str, Any]]
    broken: Sequence[Mapping[str, Any]]
    discarded: Sequence[Mapping[str, Any]]
    incidents: Sequence[Mapping[str, Any]]
    last_arrival_at: datetime | None
    current_version: int | None
    last_published_at: datetime | None
    stamped_version: int | None
    end_policy: Literal["hold", "flush_partial"]


def lost_since(
    settings: Settings, last_batch_at: datetime | None, now: datetime
) -> datetime | None:
    """Return from when on what was lost may be missed now; None: from the beginning."""
    lines = settings.duration_class.values()
    waits = [line.max_wait_seconds for line in lines if line.max_wait_seconds is not None]
    if settings.discard.max_wait_seconds is None:
        return last_batch_at
    try:
        earliest = now - timedelta(seconds=max(settings.discard.max_wait_seconds, *waits, 0.0))
    except OverflowError:  # longer than there are years
        return last_batch_at
    return max(earliest, last_batch_at) if last_batch_at else earliest


def gather(
    engine: Engine, seen: Mapping[str, Any], settings: Settings, stream: str, now: datetime
) -> Facts:
    """Return the facts: what a pass would come to, and what the whole book says around it.

    Args:
        engine: with all tables and views, as they were at `now`.
        seen: what a pass would come to, as `foresee` returns it.
        settings: what would hold for the pass.
        stream: the stream.
        now: the moment that the facts are of.
    """

    def ask(name: str, **params: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = engine.run(f"why/{name}", params).to_pylist()
        return rows

    times = ask("arrivals", stream=stream)[0]
    lost = {"stream": stream, "since": lost_since(settings, times.pop("last_batch_at"), now)}
    return Facts(
        now=now,
        target_turns=settings.batch.turns,
        ready_turns=seen["pending_turns"],
        blocker=seen["blocker"],
        unmet=seen["unmet"],
        flat_sides=seen["flat_sides"],
        enough_since=seen["enough_since"],
        funnel=seen["funnel"],
        held=seen["held"],
        supply=ask("supply", timeout_seconds=settings.end.producer_timeout_seconds)[0],
        unacked=ask("unacked", stream=stream),
        refused=ask("refused", **lost),
        lacking=ask("lacking", **lost),
        broken=ask("broken", **lost),
        discarded=ask("discarded", **lost),
        incidents=ask("incidents", stream=stream),
        end_policy=settings.end.policy,
        **times,
    )
