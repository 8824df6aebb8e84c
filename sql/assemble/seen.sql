-- Step 1. How does every sample stand that may still be open, how old is it, over which lines?
-- What lies below the low-water mark is not mounted, so nothing of it is seen. unit is what a
-- sample enters a batch with: itself by its position, or its group by a 64-bit hash of group_id
-- (of a million open groups two share one with a probability of 3e-8).
-- Age = limit is kept, limit + 1 is not; a limit that is null does not apply.
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, is_ours BOOLEAN (of this pass's stream), is_open BOOLEAN (ours, and
--   undecided), unit UBIGINT, task_type VARCHAR, stratum VARCHAR, duration_class VARCHAR,
--   state VARCHAR, reason VARCHAR, turns BIGINT (turns), reward DOUBLE, is_failed BOOLEAN,
--   is_truncated BOOLEAN, failure_share DOUBLE, started_at TIMESTAMPTZ, since TIMESTAMPTZ,
--   age_versions BIGINT (versions), age_seconds DOUBLE (s), is_over_age BOOLEAN,
--   is_over_wait BOOLEAN, is_soft BOOLEAN (over a soft limit), is_ahead BOOLEAN (made by weights
--   that are not published yet: its age is not known)
CREATE OR REPLACE TEMP TABLE seen AS
WITH aged AS (
    SELECT
        s.*,
        (r.stream = 'replay') = (s.origin = 'replay') AS is_ours,
        m.current_version - s.weight_version AS age_versions,
        CAST(epoch_us(m.now) - epoch_us(s.since) AS DOUBLE) / 1000000 AS age_seconds
    FROM sample_state AS s
    CROSS JOIN rules AS r
    CROSS JOIN moment AS m
)

SELECT
    a.position,
    a.is_ours,
    a.is_ours AND a.state IN ('pending', 'awaiting_reward') AS is_open,
    CASE
        WHEN r.group_size IS NULL OR a.group_id IS NULL THEN CAST(a.position AS UBIGINT)
        ELSE hash(a.group_id)
    END AS unit,
    a.task_type,
    a.task_type || '/' || COALESCE(a.duration_class, 'any') AS stratum,
    a.duration_class,
    a.state,
    a.reason,
    CAST(a.turns AS BIGINT) AS turns,
    a.reward,
    a.reward < COALESCE(t.success_at, r.success_at) AS is_failed,
    a.status = 'truncated' AS is_truncated,
    COALESCE(t.failure_share, r.failure_share) AS failure_share,
    a.started_at,
    a.since,
    a.age_versions,
    a.age_seconds,
    COALESCE(a.age_versions > COALESCE(c.max_age_versions, r.max_age_versions), FALSE)
        AS is_over_age,
    COALESCE(a.age_seconds > COALESCE(c.max_wait_seconds, r.max_wait_seconds), FALSE)
        AS is_over_wait,
    COALESCE(a.age_versions > COALESCE(c.soft_age_versions, r.soft_age_versions), FALSE)
        OR COALESCE(a.age_seconds > COALESCE(c.soft_wait_seconds, r.soft_wait_seconds), FALSE)
        AS is_soft,
    COALESCE(a.age_versions < 0, FALSE) AS is_ahead
FROM aged AS a
CROSS JOIN rules AS r
LEFT JOIN duration_class AS c
    ON c.name = a.duration_class
LEFT JOIN task_type_rule AS t
    ON t.name = a.task_type
