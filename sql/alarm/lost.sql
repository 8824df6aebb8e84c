-- What did the samples of a task type cost that were discarded since a moment?
-- A sum is over what was measured.
-- params: task_type VARCHAR, from_time TIMESTAMPTZ
-- returns: env_seconds DOUBLE (s)
SELECT SUM(s.env_seconds) AS env_seconds
FROM dispositions AS d
INNER JOIN samples AS s
    ON s.position = d.position
WHERE
    d.kind = 'discarded'
    AND d.decided_at >= CAST($from_time AS TIMESTAMPTZ)
    AND s.task_type = $task_type
