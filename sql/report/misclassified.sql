-- How often did the estimate put a task into another duration class than its run belongs to?
-- The bounds of the classes are those of the newest pass's settings. A run belongs to the class of
-- the least bound that it does not pass, or to the one without a bound.
-- dialect: duckdb
-- params: none
-- returns: task_type VARCHAR, duration_class VARCHAR (by the estimate), runs BIGINT,
--   longer BIGINT (runs that belong to a longer class), shorter BIGINT,
--   misclassified_share DOUBLE
WITH newest AS (
    SELECT settings_fingerprint
    FROM dispositions
    WHERE kind = 'pass'
    ORDER BY sequence DESC
    LIMIT 1
),

named AS (
    SELECT unnest(map_entries(CAST(json_extract(c.document, '$.duration_class') AS
        MAP(VARCHAR, JSON)))) AS entry
    FROM newest AS n
    INNER JOIN configs AS c
        ON c.fingerprint = n.settings_fingerprint AND c.kind = 'settings'
),

classes AS (
    SELECT
        entry.key AS name,
        COALESCE(CAST(entry.value ->> 'most_seconds' AS DOUBLE), 'infinity') AS most_seconds
    FROM named
),

runs AS (
    SELECT
        s.position,
        s.task_type,
        c.name AS duration_class,
        c.most_seconds AS estimated_bound,
        CAST(epoch_us(s.finished_at) - epoch_us(s.started_at) AS DOUBLE) / 1000000 AS seconds
    FROM samples AS s
    INNER JOIN classes AS c
        ON c.name = s.duration_class
    WHERE
        s.status IN ('completed', 'truncated', 'timed_out')
        AND s.started_at IS NOT NULL
        AND s.finished_at IS NOT NULL
),

judged AS (
    SELECT
        r.*,
        (SELECT MIN(k.most_seconds) FROM classes AS k WHERE k.most_seconds >= r.seconds)
            AS true_bound
    FROM runs AS r
)

SELECT
    task_type,
    duration_class,
    COUNT(*) AS runs,
    COUNT(*) FILTER (WHERE COALESCE(true_bound, 'infinity') > estimated_bound) AS longer,
    COUNT(*) FILTER (WHERE true_bound < estimated_bound) AS shorter,
    CAST(COUNT(*) FILTER (WHERE COALESCE(true_bound, 'infinity') <> estimated_bound) AS DOUBLE)
        / COUNT(*) AS misclassified_share
FROM judged
GROUP BY task_type, duration_class
ORDER BY task_type, duration_class
