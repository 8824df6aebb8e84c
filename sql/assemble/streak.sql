-- How many units in a row were of no use, up to the newest one?
-- A unit is a group where groups are on, else a sample. It was of use if anything in it could be
-- trained, or was. Units below the low-water mark are not seen any more, so how many of those were
-- of no use up to the mark is carried from decision to decision; low_water is the mark after this
-- pass.
-- dialect: duckdb
-- params: carried BIGINT, low_water BIGINT
-- returns: streak BIGINT (units), reasons VARCHAR (state or reason × samples, most first),
--   carried BIGINT (units)
WITH judged AS (
    SELECT
        unit,
        MAX(since) AS since,
        MAX(position) < $low_water AS goes_out_of_sight,
        bool_or(
            state IN ('pending', 'awaiting_reward', 'assigned', 'trained')
            OR (state = 'discarded' AND reason IN ('age_versions', 'wait_seconds'))
        ) AS is_useful
    FROM seen
    WHERE is_ours
    GROUP BY unit
),

latest_use AS (
    SELECT
        MAX(since) AS since,
        MAX(since) FILTER (WHERE goes_out_of_sight) AS going
    FROM judged
    WHERE is_useful
),

newest AS (
    SELECT j.unit
    FROM judged AS j
    CROSS JOIN latest_use AS l
    WHERE NOT j.is_useful AND j.since > COALESCE(l.since, '-infinity')
),

going AS (
    SELECT j.unit
    FROM judged AS j
    CROSS JOIN latest_use AS l
    WHERE NOT j.is_useful AND j.goes_out_of_sight AND j.since > COALESCE(l.going, '-infinity')
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
    (SELECT COUNT(*) FROM newest) + CASE WHEN l.since IS NULL THEN $carried ELSE 0 END AS streak,
    (SELECT string_agg(text, ', ' ORDER BY samples DESC, text) FROM counted) AS reasons,
    (SELECT COUNT(*) FROM going) + CASE WHEN l.going IS NULL THEN $carried ELSE 0 END AS carried
FROM latest_use AS l
