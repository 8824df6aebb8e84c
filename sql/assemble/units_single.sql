-- Step 2, without groups. How does each open sample stand as a unit of its own?
-- verdict: ready, ungraded (its reward is awaited), ahead (its weights are not published), stale,
-- oversize.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, verdict VARCHAR, task_type VARCHAR,
--   stratum VARCHAR, since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), slack DOUBLE (turns), members BIGINT, open_samples BIGINT,
--   open_turns BIGINT (turns), least_reward DOUBLE, most_reward DOUBLE,
--   is_flat BOOLEAN (only a group can be),
--   can_fit BOOLEAN (its failed and its truncated turns alone are not too many for one batch)
CREATE OR REPLACE TEMP VIEW units AS
SELECT
    s.unit,
    s.position AS first_position,
    CASE
        WHEN s.is_over_age OR s.is_over_wait THEN 'stale'
        WHEN s.state = 'awaiting_reward' THEN 'ungraded'
        WHEN s.is_ahead THEN 'ahead'
        WHEN s.turns > r.max_unit_turns THEN 'oversize'
        ELSE 'ready'
    END AS verdict,
    s.task_type,
    s.stratum,
    s.since,
    s.turns,
    CASE WHEN s.is_failed THEN s.turns ELSE 0 END AS failed_turns,
    CASE WHEN s.is_truncated THEN s.turns ELSE 0 END AS truncated_turns,
    round(s.failure_share * s.turns - CASE WHEN s.is_failed THEN s.turns ELSE 0 END, 9) AS slack,
    CAST(1 AS BIGINT) AS members,
    CAST(1 AS BIGINT) AS open_samples,
    s.turns AS open_turns,
    s.reward AS least_reward,
    s.reward AS most_reward,
    FALSE AS is_flat,
    (slack >= 0 OR -slack < s.failure_share * r.turns)
        AND (
            r.truncated_share = 1
            OR NOT s.is_truncated
            OR s.turns <= r.truncated_share * r.turns + 1e-6
        ) AS can_fit
FROM seen AS s
CROSS JOIN rules AS r
WHERE s.is_open
