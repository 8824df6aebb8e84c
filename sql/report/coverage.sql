-- How often did a run end within what was estimated at its enqueue?
-- An estimate aims at a share of 0.9. Runs without an estimate are counted and not judged.
-- dialect: duckdb
-- params: none
-- returns: task_type VARCHAR, weight_version BIGINT, runs BIGINT, estimated BIGINT (runs),
--   covered_share DOUBLE (of the estimated), median_ratio DOUBLE (run / estimate)
WITH runs AS (
    SELECT
        task_type,
        weight_version,
        CAST(epoch_us(finished_at) - epoch_us(started_at) AS DOUBLE) / 1000000 AS seconds,
        expected_seconds
    FROM samples
    WHERE
        status IN ('completed', 'truncated', 'timed_out')
        AND started_at IS NOT NULL
        AND finished_at IS NOT NULL
)

SELECT
    task_type,
    weight_version,
    COUNT(*) AS runs,
    COUNT(expected_seconds) AS estimated,
    CAST(COUNT(*) FILTER (WHERE seconds <= expected_seconds) AS DOUBLE)
        / NULLIF(COUNT(expected_seconds), 0) AS covered_share,
    median(seconds / NULLIF(expected_seconds, 0)) AS median_ratio
FROM runs
GROUP BY task_type, weight_version
ORDER BY task_type, weight_version
