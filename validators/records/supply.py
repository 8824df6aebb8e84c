"""heartbeats: what producers say of themselves, so that a stall can be told from a pause."""

from ..columns import BigCount, Count, Flag, Id, Record, Time, optional, required


class Heartbeat(Record):
    """One sign of life of a producer."""

    beat_id: Id = required("the beat's own id")
    producer: Id = required("who lives")
    beat_at: Time = required("when")
    in_flight: Count = required("samples that it is making", unit="samples")
    in_flight_turns: BigCount | None = optional(
        "the most turns that these may still bring; null = not known", unit="turns"
    )
    is_exhausted: Flag = required("whether it has no task left to start")
