-- Step 2b, with groups. What does each group hold, by the roles of its members?
-- Turns, failed turns and rewards are those of kept members; ended counts all that are not
-- awaited. Task type, stratum and failure share are those of the first member.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, task_type VARCHAR, stratum VARCHAR, failure_share DOUBLE,
--   first_position BIGINT, since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), members BIGINT, open_samples BIGINT,
--   open_turns BIGINT (turns), ended BIGINT, awaited BIGINT, ahead BIGINT, stale BIGINT,
--   unusable BIGINT, decided BIGINT, least_reward DOUBLE, most_reward DOUBLE
CREATE OR REPLACE TEMP TABLE groups AS
SELECT
    unit,
    min_by(task_type, position) AS task_type,
    min_by(stratum, position) AS stratum,
    min_by(failure_share, position) AS failure_share,
    MIN(position) AS first_position,
    MIN(since) AS since,
    CAST(COALESCE(SUM(turns) FILTER (WHERE role = 'kept'), 0) AS BIGINT) AS turns,
    CAST(
        COALESCE(SUM(turns) FILTER (WHERE role = 'kept' AND is_failed), 0) AS BIGINT
    ) AS failed_turns,
    CAST(
        COALESCE(SUM(turns) FILTER (WHERE role = 'kept' AND is_truncated), 0) AS BIGINT
    ) AS truncated_turns,
    COUNT(*) FILTER (WHERE role = 'kept') AS members,
    COUNT(*) FILTER (WHERE role IN ('kept', 'extra', 'awaited', 'ahead', 'stale')) AS open_samples,
    CAST(
        COALESCE(
            SUM(turns) FILTER (WHERE role IN ('kept', 'extra', 'awaited', 'ahead', 'stale')), 0
        ) AS BIGINT
    ) AS open_turns,
    COUNT(*) FILTER (WHERE role <> 'awaited') AS ended,
    COUNT(*) FILTER (WHERE role = 'awaited') AS awaited,
    COUNT(*) FILTER (WHERE role = 'ahead') AS ahead,
    COUNT(*) FILTER (WHERE role IN ('stale', 'gone')) AS stale,
    COUNT(*) FILTER (WHERE role = 'unusable') AS unusable,
    COUNT(*) FILTER (WHERE role = 'decided') AS decided,
    MIN(reward) FILTER (WHERE role = 'kept') AS least_reward,
    MAX(reward) FILTER (WHERE role = 'kept') AS most_reward
FROM members
GROUP BY unit
