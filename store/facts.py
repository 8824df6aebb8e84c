"""What a post-mortem is made of: the pipeline's result without a commit, and what surrounds it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known about the next batch of a stream.

    Attributes:
        now: the moment that the facts are of.
        target_turns: turns that complete a batch.
        ready_turns: turns that could enter it.
        blocker: what the pipeline says: short, no_gradient, least_share; None if it could go.
        unmet: strata below their least share.
        enough_since: when the pending turns first sufficed.
        funnel: samples and turns by step, reason and task type.
        supply: producers, live, last_beat_at, exhausted, in_flight, in_flight_turns.
        unacked: batches that were made and not acked.
        refused: rules that refused samples since the last batch, most first.
        turns_of_refused: turns that these samples stated; None where they did not.
        lacking: evidence that held samples lack, most first.
        discarded: discards since the last batch, by reason and task type, most turns first.
        last_arrival_at: when the last sample came.
    """

    now: datetime
    target_turns: int
    ready_turns: int
    blocker: str | None
    unmet: Sequence[str]
    enough_since: datetime | None
    funnel: Sequence[dict[str, Any]]
    supply: Mapping[str, Any]
    unacked: Sequence[Mapping[str, Any]]
    refused: Sequence[Mapping[str, Any]]
    turns_of_refused: int | None
    lacking: Sequence[Mapping[str, Any]]
    discarded: Sequence[Mapping[str, Any]]
    last_arrival_at: datetime | None
