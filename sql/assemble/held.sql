-- Step 12. What is held back, and may come in later?
-- Of a quota only what may be needed is looked at one by one. Beyond that all is held that fits
-- into no batch, and where the batch is short all that is ready: else it would have filled it.
-- dialect: duckdb
-- params: none
-- returns: reason VARCHAR (failure_quota, truncation_line, unpublished, awaiting_reward,
--   group_open), task_type VARCHAR, samples BIGINT, turns BIGINT (turns), since TIMESTAMPTZ
CREATE OR REPLACE TEMP TABLE held AS
WITH kept_back AS (
    SELECT
        CASE verdict
            WHEN 'ahead' THEN 'unpublished'
            WHEN 'ungraded' THEN 'awaiting_reward'
            ELSE 'group_open'
        END AS reason,
        task_type,
        open_samples AS samples,
        open_turns AS turns,
        since
    FROM units
    WHERE verdict IN ('waiting', 'ungraded', 'ahead')
    UNION ALL
    SELECT 'failure_quota', task_type, members, turns, since
    FROM quota
    WHERE is_held
    UNION ALL
    SELECT 'truncation_line', task_type, members, turns, since
    FROM quota
    WHERE unit IN (SELECT unit FROM truncation)
    UNION ALL
    SELECT
        CASE WHEN u.slack < 0 THEN 'failure_quota' ELSE 'truncation_line' END,
        u.task_type,
        u.members,
        u.turns,
        u.since
    FROM units AS u
    CROSS JOIN verdict AS v
    WHERE
        u.verdict = 'ready'
        AND (NOT u.can_fit OR v.blocker = 'short' AND u.unit NOT IN (SELECT unit FROM quota))
)

SELECT
    reason,
    task_type,
    CAST(SUM(samples) AS BIGINT) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
    MIN(since) AS since
FROM kept_back
GROUP BY reason, task_type
