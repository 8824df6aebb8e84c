-- Step 3, without groups. How does each sample stand as a unit of its own?
-- verdict: ready, waiting (for its reward), ahead (its weights are not published), stale,
-- oversize.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, verdict VARCHAR, task_type VARCHAR,
--   stratum VARCHAR, since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), slack DOUBLE (turns), members BIGINT, open_samples BIGINT,
--   open_turns BIGINT (turns), least_reward DOUBLE, most_reward DOUBLE,
--   is_flat BOOLEAN (only a group can be)
CREATE OR REPLACE TEMP TABLE units AS
SELECT
    p.unit,
    p.position AS first_position,
    CASE
        WHEN p.reasons IS NOT NULL THEN 'stale'
        WHEN p.state = 'awaiting_reward' THEN 'waiting'
        WHEN p.is_ahead THEN 'ahead'
        WHEN p.turns > r.max_unit_turns THEN 'oversize'
        ELSE 'ready'
    END AS verdict,
    p.task_type,
    p.stratum,
    p.since,
    p.turns,
    CASE WHEN p.reward < COALESCE(t.success_at, r.success_at) THEN p.turns ELSE 0 END
        AS failed_turns,
    CASE WHEN p.status = 'truncated' THEN p.turns ELSE 0 END AS truncated_turns,
    COALESCE(t.failure_share, r.failure_share) * p.turns
        - CASE WHEN p.reward < COALESCE(t.success_at, r.success_at) THEN p.turns ELSE 0 END
        AS slack,
    CAST(1 AS BIGINT) AS members,
    CAST(1 AS BIGINT) AS open_samples,
    p.turns AS open_turns,
    p.reward AS least_reward,
    p.reward AS most_reward,
    FALSE AS is_flat
FROM pool AS p
CROSS JOIN rules AS r
LEFT JOIN task_type_rule AS t
    ON t.name = p.task_type
