-- How many units in a row were of no use, up to the newest one?
-- A unit is a group where groups are on, else a sample. It was of use if anything in it could be
-- trained, or was.
-- dialect: duckdb
-- params: none
-- returns: streak BIGINT (units), reasons VARCHAR (state or reason × samples, most first)
WITH judged AS (
    SELECT
        unit,
        MAX(since) AS since,
        bool_or(
            state IN ('pending', 'awaiting_reward', 'assigned', 'trained')
            OR (state = 'discarded' AND reason IN ('age_versions', 'wait_seconds'))
        ) AS is_useful
    FROM seen
    WHERE is_ours
    GROUP BY unit
),

newest AS (
    SELECT unit
    FROM judged
    WHERE
        NOT is_useful
        AND since > COALESCE((SELECT MAX(since) FROM judged WHERE is_useful), '-infinity')
),

counted AS (
    SELECT
        COALESCE(s.reason, s.state) || ' × ' || CAST(COUNT(*) AS VARCHAR) AS text,
        COUNT(*) AS samples
    FROM seen AS s
    WHERE s.unit IN (SELECT unit FROM newest)
    GROUP BY COALESCE(s.reason, s.state)
)

SELECT
    (SELECT COUNT(*) FROM newest) AS streak,
    (SELECT string_agg(text, ', ' ORDER BY samples DESC, text) FROM counted) AS reasons
