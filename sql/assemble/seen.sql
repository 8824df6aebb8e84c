-- Step 1. How does every sample stand that may still be open?
-- What lies below the low-water mark is not mounted, so nothing of it is seen. unit is what a
-- sample enters a batch with: itself by its position, or its group by a 64-bit hash of group_id
-- (of a million open groups two share one with a probability of 3e-8).
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, is_ours BOOLEAN (of this pass's stream), unit UBIGINT,
--   task_type VARCHAR, stratum VARCHAR, duration_class VARCHAR, state VARCHAR, reason VARCHAR,
--   status VARCHAR, turns BIGINT (turns), reward DOUBLE, weight_version BIGINT,
--   started_at TIMESTAMPTZ, since TIMESTAMPTZ
CREATE OR REPLACE TEMP TABLE seen AS
SELECT
    s.position,
    (r.stream = 'replay') = (s.origin = 'replay') AS is_ours,
    CASE
        WHEN r.group_size IS NULL OR s.group_id IS NULL THEN CAST(s.position AS UBIGINT)
        ELSE hash(s.group_id)
    END AS unit,
    s.task_type,
    s.task_type || '/' || COALESCE(s.duration_class, 'any') AS stratum,
    s.duration_class,
    s.state,
    s.reason,
    s.status,
    CAST(s.turns AS BIGINT) AS turns,
    s.reward,
    s.weight_version,
    s.started_at,
    s.since
FROM sample_state AS s
CROSS JOIN rules AS r
