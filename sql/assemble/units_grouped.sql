-- Step 3b, with groups. How does each group stand as a unit?
-- A group settles when all its members have ended, or $settle_seconds after the first of them,
-- by the clock in the data. verdict: ready, waiting, late (its group was decided before),
-- sibling (a member spoils the group), group_incomplete, flat, oversize, dead (nothing open).
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, verdict VARCHAR, task_type VARCHAR,
--   stratum VARCHAR, since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), slack DOUBLE (turns), members BIGINT, open_samples BIGINT,
--   open_turns BIGINT (turns), least_reward DOUBLE, most_reward DOUBLE, is_flat BOOLEAN
CREATE OR REPLACE TEMP TABLE units AS
WITH summed AS (
    SELECT
        unit,
        min_by(task_type, position) AS task_type,
        min_by(stratum, position) AS stratum,
        MIN(position) AS first_position,
        MIN(since) AS since,
        COALESCE(SUM(turns) FILTER (WHERE role = 'kept'), 0) AS turns,
        COALESCE(SUM(failed_turns) FILTER (WHERE role = 'kept'), 0) AS failed_turns,
        COALESCE(SUM(truncated_turns) FILTER (WHERE role = 'kept'), 0) AS truncated_turns,
        COUNT(*) FILTER (WHERE role = 'kept') AS members,
        COUNT(*) FILTER (WHERE role IN ('kept', 'extra', 'awaited', 'stale')) AS open_samples,
        COALESCE(SUM(turns) FILTER (WHERE role IN ('kept', 'extra', 'awaited', 'stale')), 0)
            AS open_turns,
        COUNT(*) FILTER (WHERE role <> 'awaited') AS ended,
        COUNT(*) FILTER (WHERE role IN ('stale', 'gone')) AS stale,
        COUNT(*) FILTER (WHERE role = 'unusable') AS unusable,
        COUNT(*) FILTER (WHERE role = 'decided') AS decided,
        MIN(reward) FILTER (WHERE role = 'kept') AS least_reward,
        MAX(reward) FILTER (WHERE role = 'kept') AS most_reward
    FROM members
    GROUP BY unit
),

judged AS (
    SELECT
        u.*,
        COALESCE(u.most_reward - u.least_reward <= r.flat_tolerance, FALSE) AS is_flat,
        u.ended >= r.group_size
            OR m.now >= u.since + to_microseconds(CAST(r.settle_seconds * 1000000 AS BIGINT))
            AS is_settled
    FROM summed AS u
    CROSS JOIN rules AS r
    CROSS JOIN moment AS m
)

SELECT
    j.unit,
    j.first_position,
    CASE
        WHEN j.open_samples = 0 THEN 'dead'
        WHEN j.decided > 0 THEN 'late'
        WHEN j.stale > 0 AND r.stale_policy = 'group' THEN 'sibling'
        WHEN NOT j.is_settled THEN 'waiting'
        WHEN j.unusable > 0 AND r.unusable_policy = 'group' THEN 'sibling'
        WHEN j.members < r.min_members THEN 'group_incomplete'
        WHEN j.is_flat AND r.flat_policy = 'discard' THEN 'flat'
        WHEN j.turns > r.max_unit_turns THEN 'oversize'
        ELSE 'ready'
    END AS verdict,
    j.task_type,
    j.stratum,
    j.since,
    CAST(j.turns AS BIGINT) AS turns,
    CAST(j.failed_turns AS BIGINT) AS failed_turns,
    CAST(j.truncated_turns AS BIGINT) AS truncated_turns,
    CAST(COALESCE(t.failure_share, r.failure_share) * j.turns - j.failed_turns AS DOUBLE) AS slack,
    j.members,
    j.open_samples,
    CAST(j.open_turns AS BIGINT) AS open_turns,
    j.least_reward,
    j.most_reward,
    j.is_flat
FROM judged AS j
CROSS JOIN rules AS r
LEFT JOIN task_type_rule AS t
    ON t.name = j.task_type
