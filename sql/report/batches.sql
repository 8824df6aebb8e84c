-- What was in each batch, and what did the learner say of it?
-- failed_share is of the batch's turns, truncated_share of T, as the limits are. The learner's
-- figures are those of its ack; figures holds all of them.
-- dialect: duckdb
-- params: stream VARCHAR
-- returns: batch_id VARCHAR, stream VARCHAR, state VARCHAR, assembled_at TIMESTAMPTZ,
--   target_turns BIGINT (turns), turns BIGINT (turns), is_partial BOOLEAN, samples INTEGER,
--   units INTEGER, failed_share DOUBLE, truncated_share DOUBLE, discarded INTEGER (samples),
--   unmet VARCHAR[], weight_version BIGINT, ess_share DOUBLE, clipped_share DOUBLE,
--   figures VARCHAR (JSON)
SELECT
    b.batch_id,
    b.stream,
    b.state,
    b.assembled_at,
    b.target_turns,
    b.turns,
    b.is_partial,
    b.samples,
    b.units,
    CAST(p.failed_turns AS DOUBLE) / NULLIF(b.turns, 0) AS failed_share,
    CAST(p.truncated_turns AS DOUBLE) / NULLIF(b.target_turns, 0) AS truncated_share,
    p.discarded,
    p.unmet,
    b.weight_version,
    TRY_CAST(b.figures ->> '$.ess_share' AS DOUBLE) AS ess_share,
    TRY_CAST(b.figures ->> '$.clipped_share' AS DOUBLE) AS clipped_share,
    b.figures
FROM batch AS b
INNER JOIN dispositions AS p
    ON p.sequence = b.sequence AND p.kind = 'pass'
WHERE CAST($stream AS VARCHAR) IS NULL OR b.stream = $stream
ORDER BY b.sequence
