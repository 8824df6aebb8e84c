-- Step 4. Which ready units can be needed at all?
-- Of each stratum the oldest, up to one batch's worth of turns, apart for units that give slack
-- to the failure quota, that need it, that hold failed turns and that hold truncated turns. To
-- find them without sorting all, time is cut into 256 slices and the turns are summed by slice.
-- A unit that fits into no batch under the quota or the line waits without keeping others waiting.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, task_type VARCHAR, stratum VARCHAR,
--   since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), slack DOUBLE (turns), members BIGINT, least_reward DOUBLE,
--   most_reward DOUBLE, is_flat BOOLEAN
CREATE OR REPLACE TEMP TABLE front AS
WITH span AS (
    SELECT
        MIN(epoch_us(since)) AS start,
        greatest((MAX(epoch_us(since)) - MIN(epoch_us(since))) // 256, 1) AS width
    FROM units
    WHERE verdict = 'ready' AND can_fit
),

slices AS (
    SELECT
        u.stratum,
        u.slack < 0 AS is_needy,
        u.failed_turns > 0 AS has_failed,
        u.truncated_turns > 0 AS is_cut_short,
        (epoch_us(u.since) - s.start) // s.width AS slice,
        SUM(u.turns) AS turns
    FROM units AS u
    CROSS JOIN span AS s
    WHERE u.verdict = 'ready' AND u.can_fit
    GROUP BY 1, 2, 3, 4, 5
),

summed AS (
    SELECT
        *,
        SUM(turns) OVER (
            PARTITION BY stratum, is_needy, has_failed, is_cut_short
            ORDER BY slice
            ROWS UNBOUNDED PRECEDING
        ) - turns AS turns_before
    FROM slices
),

ends AS (
    SELECT
        f.stratum,
        f.is_needy,
        f.has_failed,
        f.is_cut_short,
        -- The first microsecond that is not needed any more.
        ANY_VALUE(s.start) + (MAX(f.slice) + 1) * ANY_VALUE(s.width) AS end_us
    FROM summed AS f
    CROSS JOIN rules AS r
    CROSS JOIN span AS s
    WHERE f.turns_before < r.turns
    GROUP BY f.stratum, f.is_needy, f.has_failed, f.is_cut_short
)

SELECT u.* EXCLUDE (verdict, open_samples, open_turns, can_fit)
FROM units AS u
INNER JOIN ends AS e
    ON e.stratum = u.stratum
    AND e.is_needy = (u.slack < 0)
    AND e.has_failed = (u.failed_turns > 0)
    AND e.is_cut_short = (u.truncated_turns > 0)
WHERE u.verdict = 'ready' AND u.can_fit AND epoch_us(u.since) < e.end_us
