-- Step 2c, with groups. How does each group stand as a unit?
-- A group settles when all its members have ended, or $settle_seconds after the first of them,
-- by the clock in the data. One whose weights are not published yet waits for them even so.
-- verdict: ready, waiting (for members), ungraded (all are there, but a reward is awaited), ahead
-- (its weights are not published), late (its group was decided before), sibling (a member spoils
-- the group), group_incomplete, flat, oversize, dead (nothing open).
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, verdict VARCHAR, task_type VARCHAR,
--   stratum VARCHAR, since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), slack DOUBLE (turns), members BIGINT, open_samples BIGINT,
--   open_turns BIGINT (turns), least_reward DOUBLE, most_reward DOUBLE, is_flat BOOLEAN,
--   can_fit BOOLEAN (its failed and its truncated turns alone are not too many for one batch)
CREATE OR REPLACE TEMP VIEW units AS
WITH judged AS (
    SELECT
        u.*,
        COALESCE(u.most_reward - u.least_reward <= r.flat_tolerance, FALSE) AS is_flat,
        u.ended >= r.group_size
            OR m.now >= u.since + to_microseconds(CAST(r.settle_seconds * 1000000 AS BIGINT))
            AS is_settled
    FROM groups AS u
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
        WHEN NOT j.is_settled AND j.ended + j.awaited >= r.group_size THEN 'ungraded'
        WHEN NOT j.is_settled THEN 'waiting'
        WHEN j.ahead > 0 THEN 'ahead'
        WHEN j.unusable > 0 AND r.unusable_policy = 'group' THEN 'sibling'
        WHEN j.members < r.min_members THEN 'group_incomplete'
        WHEN j.is_flat AND r.flat_policy = 'discard' THEN 'flat'
        WHEN j.turns > r.max_unit_turns THEN 'oversize'
        ELSE 'ready'
    END AS verdict,
    j.task_type,
    j.stratum,
    j.since,
    j.turns,
    j.failed_turns,
    j.truncated_turns,
    -- Rounded, so that exactly the share f is not a need: 0.29 * 100 is less than 29.
    round(j.failure_share * j.turns - j.failed_turns, 9) AS slack,
    j.members,
    j.open_samples,
    j.open_turns,
    j.least_reward,
    j.most_reward,
    j.is_flat,
    (slack >= 0 OR -slack < j.failure_share * r.turns)
        AND (r.truncated_share = 1 OR j.truncated_turns <= r.truncated_share * r.turns + 1e-6)
        AS can_fit
FROM judged AS j
CROSS JOIN rules AS r
