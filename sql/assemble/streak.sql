-- How many units in a row were of no use, up to the newest one?
-- A unit is a group where groups are on, else a sample. It was of use if anything in it is ready,
-- was trained or is to be, or was only too old; while that is open it is not counted. Units stand
-- in the order in which their first sample ended. Those below the low-water mark are not seen any
-- more, so how many of them were of no use up to the mark is carried from decision to decision;
-- low_water is the mark after this pass.
-- dialect: duckdb
-- params: carried BIGINT, low_water BIGINT
-- returns: streak BIGINT (units), reasons VARCHAR (reason or state × samples, most first),
--   carried BIGINT (units)
WITH fates AS (
    SELECT
        s.unit,
        s.position,
        s.since,
        COALESCE(d.reason, s.reason, s.state) AS reason,
        s.is_open AND d.position IS NULL AS is_undecided,
        s.state IN ('assigned', 'trained')
            OR COALESCE(d.reason, s.reason, '') IN ('age_versions', 'wait_seconds') AS was_useful
    FROM seen AS s
    LEFT JOIN discards AS d
        ON d.position = s.position
    WHERE s.is_ours AND s.reason IS DISTINCT FROM 'late'
),

useful AS (
    SELECT
        MIN(since) AS since,
        MAX(position) < $low_water AS goes_out_of_sight
    FROM fates
    WHERE was_useful
    GROUP BY unit
    UNION ALL
    SELECT
        MAX(since),
        FALSE
    FROM units
    WHERE verdict = 'ready'
),

latest_use AS (
    SELECT
        MAX(since) AS since,
        MAX(since) FILTER (WHERE goes_out_of_sight) AS going
    FROM useful
),

dead AS (
    -- Only units that hold something of no use: to group all would take as long as the rest.
    SELECT
        unit,
        MIN(since) AS since,
        MAX(position) < $low_water AS goes_out_of_sight
    FROM fates
    WHERE unit IN (SELECT unit FROM fates WHERE NOT is_undecided AND NOT was_useful)
    GROUP BY unit
    HAVING NOT bool_or(is_undecided OR was_useful)
),

newest AS (
    SELECT d.unit
    FROM dead AS d
    CROSS JOIN latest_use AS l
    WHERE d.since > COALESCE(l.since, '-infinity')
),

going AS (
    SELECT d.unit
    FROM dead AS d
    CROSS JOIN latest_use AS l
    WHERE d.goes_out_of_sight AND d.since > COALESCE(l.going, '-infinity')
),

counted AS (
    SELECT
        f.reason || ' × ' || CAST(COUNT(*) AS VARCHAR) AS text,
        COUNT(*) AS samples
    FROM fates AS f
    WHERE f.unit IN (SELECT unit FROM newest)
    GROUP BY f.reason
)

SELECT
    (SELECT COUNT(*) FROM newest) + CASE WHEN l.since IS NULL THEN $carried ELSE 0 END AS streak,
    (SELECT string_agg(text, ', ' ORDER BY samples DESC, text) FROM counted) AS reasons,
    (SELECT COUNT(*) FROM going) + CASE WHEN l.going IS NULL THEN $carried ELSE 0 END AS carried
FROM latest_use AS l
