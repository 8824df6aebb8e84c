-- What was discarded since then, by reason and task type?
-- params: stream VARCHAR, since TIMESTAMPTZ
-- returns: reason VARCHAR, task_type VARCHAR, samples BIGINT, turns BIGINT (turns),
--   first_at TIMESTAMPTZ
SELECT
    d.reason,
    s.task_type,
    COUNT(*) AS samples,
    CAST(COALESCE(SUM(s.turns), 0) AS BIGINT) AS turns,
    MIN(d.decided_at) AS first_at
FROM dispositions AS d
INNER JOIN samples AS s
    ON s.position = d.position
WHERE
    d.kind = 'discarded'
    AND (s.origin = 'replay') = ($stream = 'replay')
    AND (CAST($since AS TIMESTAMPTZ) IS NULL OR d.decided_at > $since)
GROUP BY d.reason, s.task_type
ORDER BY turns DESC, d.reason, s.task_type
