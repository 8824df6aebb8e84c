-- Which task types lost all that they made in a window: samples discarded, none assigned?
-- dialect: duckdb
-- params: window_seconds DOUBLE
-- returns: task_type VARCHAR, discarded BIGINT (samples), turns BIGINT (turns),
--   env_seconds DOUBLE (s)
SELECT
    s.task_type,
    COUNT(*) AS discarded,
    CAST(COALESCE(SUM(s.turns), 0) AS BIGINT) AS turns,
    COALESCE(SUM(s.env_seconds), 0) AS env_seconds
FROM dispositions AS d
INNER JOIN samples AS s
    ON s.position = d.position
CROSS JOIN moment AS m
WHERE
    d.kind IN ('discarded', 'assigned')
    AND epoch_us(m.now) - epoch_us(d.decided_at) <= CAST($window_seconds AS DOUBLE) * 1000000
GROUP BY s.task_type
HAVING COUNT(*) FILTER (WHERE d.kind = 'assigned') = 0
ORDER BY s.task_type
