-- Which task types lost all that they made since a moment: samples discarded, none assigned?
-- What was discarded and assigned stands in the funnels of the passes, a few entries each, so the
-- samples need not be looked at.
-- dialect: duckdb
-- params: from_time TIMESTAMPTZ
-- returns: task_type VARCHAR, discarded BIGINT (samples), turns BIGINT (turns)
WITH entries AS (
    SELECT
        unnest(
            from_json(
                funnel,
                '[{"step": "VARCHAR", "task_type": "VARCHAR", "samples": "BIGINT",
                   "turns": "BIGINT"}]'
            )
        ) AS entry
    FROM dispositions
    WHERE kind = 'pass' AND decided_at >= CAST($from_time AS TIMESTAMPTZ)
)

SELECT
    entry.task_type AS task_type,
    CAST(SUM(entry.samples) AS BIGINT) AS discarded,
    CAST(SUM(entry.turns) AS BIGINT) AS turns
FROM entries
WHERE entry.step IN ('discarded', 'assigned')
GROUP BY entry.task_type
HAVING bool_and(entry.step = 'discarded')
ORDER BY task_type
