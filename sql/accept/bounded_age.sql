-- Has sample age a hard cap, over which a sample is discarded and counted?
-- A sample that was put into a batch while no cap at all applied to it is a failure.
-- dialect: duckdb
-- params: none
-- returns: figure VARCHAR, value DOUBLE, least DOUBLE, most DOUBLE
WITH assigned AS (
    SELECT
        COUNT(DISTINCT batch_id) FILTER (WHERE batch_state = 'trained') AS trained,
        MAX(age_versions) AS oldest_versions,
        MAX(age_seconds) AS oldest_seconds,
        COUNT(*) FILTER (WHERE max_age_versions IS NULL AND max_wait_seconds IS NULL)
            AS uncapped
    FROM batch_sample
),

discarded AS (
    SELECT
        COUNT(*) AS discards,
        COUNT(*) FILTER (WHERE reason IN ('age_versions', 'wait_seconds')) AS of_age
    FROM dispositions
    WHERE kind = 'discarded'
)

SELECT
    f.figure,
    CAST(f.value AS DOUBLE) AS value,
    CAST(f.least AS DOUBLE) AS least,
    CAST(f.most AS DOUBLE) AS most
FROM assigned AS a
CROSS JOIN discarded AS d
CROSS JOIN LATERAL (
    VALUES
        (1, 'trained_batches', a.trained, 1, NULL),
        (2, 'oldest_age_versions', a.oldest_versions, NULL, NULL),
        (3, 'oldest_age_seconds', a.oldest_seconds, NULL, NULL),
        (4, 'discards', d.discards, NULL, NULL),
        (5, 'discards_by_age', d.of_age, NULL, NULL),
        (6, 'assigned_without_a_cap', a.uncapped, NULL, 0)
) AS f (place, figure, value, least, most)
ORDER BY f.place
