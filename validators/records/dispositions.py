"""dispositions: the journal of decisions, written only by compare-and-set.

One commit is one decision. It holds one header row (kind `pass`, `leased`, `acked` or
`returned`) and one row for each sample that it is about. `sequence` is the table version
of the commit, so it orders all decisions.
"""

from typing import Literal

from ..columns import (
    BigCount,
    Count,
    Digest,
    Flag,
    Float,
    Id,
    Int64,
    Json,
    Record,
    Text,
    Time,
    optional,
    required,
)


class Disposition(Record):
    """One row of a decision."""

    sequence: Int64 = required("table version of the commit; total order of decisions")
    position: Int64 = required("position of the sample; on a header the batch's lowest")
    low_water: Int64 = required("no sample below this position is still open")
    kind: Literal[
        "pass", "leased", "acked", "returned", "assigned", "discarded", "trained", "released"
    ] = required("headers: pass, leased, acked, returned; of a sample: the others")
    decided_at: Time = required("when it was decided")
    batch_id: Id | None = optional("the batch that it is about")

    sample_id: Id | None = optional("the sample")
    ordinal: Count | None = optional("place in the batch, 0 = first")
    reason: Text | None = optional("why: the primary reason")
    reasons: list[Text] | None = optional("every reason that applied; pass: too_easy, too_hard")
    reward: Float | None = optional("the reward that held when it was decided")
    weight_version: BigCount | None = optional("the learner's current weight version")
    age_versions: Int64 | None = optional(
        "current version minus version at dispatch", unit="versions"
    )
    age_seconds: Float | None = optional("seconds since it finished", unit="s")
    limit: Float | None = optional("the limit that a discard exceeded")

    stream: Id | None = optional("pass: the stream")
    target_turns: BigCount | None = optional("pass: turns that complete a batch (T)", unit="turns")
    turns: BigCount | None = optional("pass: turns in the batch", unit="turns")
    samples: Count | None = optional("pass: samples in the batch", unit="samples")
    units: Count | None = optional("pass: units in the batch", unit="units")
    is_partial: Flag | None = optional("pass: emitted below T on purpose")
    learner: Id | None = optional("leased, pass: who holds the batch")
    lease_until: Time | None = optional("leased, pass: when it comes out again")
    discarded: Count | None = optional("pass: samples that it discarded", unit="samples")
    failed_turns: BigCount | None = optional("pass: failed turns in the batch", unit="turns")
    truncated_turns: BigCount | None = optional("pass: truncated turns in it", unit="turns")
    blocker: Text | None = optional("pass: why it made no batch")
    unmet: list[Text] | None = optional("pass: strata below their least share")
    settings_fingerprint: Digest | None = optional("pass: the settings that held")
    funnel: Json | None = optional("pass: samples and turns after every step")
    blockers: Json | None = optional("pass: what kept turns out, most first")
    balance: Json | None = optional("headers: what each stratum is owed, by stream")
    table_versions: Json | None = optional("pass: versions of all tables read")
    figures: Json | None = optional("acked: what the learner handed back")
