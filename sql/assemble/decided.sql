-- Step 13. What is decided about each sample of this pass?
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, sample_id VARCHAR, kind VARCHAR, ordinal INTEGER, reason VARCHAR,
--   reasons VARCHAR[], reward DOUBLE, age_versions BIGINT (versions), age_seconds DOUBLE (s),
--   exceeded_limit DOUBLE
WITH decided AS (
    SELECT position, 'discarded' AS kind, NULL AS ordinal, reason, reasons, exceeded_limit
    FROM discards
    UNION ALL
    SELECT position, 'assigned', ordinal, NULL, NULL, NULL
    FROM chosen
)

SELECT
    d.position,
    s.sample_id,
    d.kind,
    CAST(d.ordinal AS INTEGER) AS ordinal,
    d.reason,
    d.reasons,
    w.reward,
    w.age_versions,
    w.age_seconds,
    d.exceeded_limit
FROM decided AS d
INNER JOIN seen AS w
    ON w.position = d.position
INNER JOIN samples AS s
    ON s.position = d.position
ORDER BY d.kind, d.ordinal NULLS LAST, d.position
