-- How many prompts of which task type are to be submitted again, and for which reasons?
-- A prompt is a group, or a task where there is none. It is asked for once, if it came to nothing:
-- something of it was lost, and nothing of it was trained, is in a batch, or may still be. Its
-- reasons are those of all that it lost. With from_time, only what was lost since then counts.
-- dialect: duckdb
-- params: from_time TIMESTAMPTZ
-- returns: task_type VARCHAR, prompts BIGINT, samples BIGINT (lost), turns BIGINT (turns lost),
--   reasons VARCHAR[]
WITH lost AS (
    SELECT
        position,
        reasons
    FROM dispositions
    WHERE kind = 'discarded'
),

members AS (
    SELECT
        COALESCE(w.group_id, s.task_id) AS prompt,
        w.group_id IS NOT NULL AS is_group,
        w.tenant,
        w.task_type,
        w.position,
        w.turns,
        w.state IN ('discarded', 'never_trainable', 'evidence_missing') AS is_lost,
        CASE w.state
            WHEN 'discarded' THEN COALESCE(d.reasons, [w.reason])
            WHEN 'never_trainable' THEN [w.reason]
            WHEN 'evidence_missing' THEN [w.state]
            ELSE []
        END AS reasons,
        COALESCE(w.decided_at, s.ingested_at) AS lost_at
    FROM sample_state AS w
    INNER JOIN samples AS s
        ON s.position = w.position
    LEFT JOIN lost AS d
        ON d.position = w.position
    WHERE w.origin <> 'replay'
),

prompts AS (
    SELECT
        min_by(task_type, position) AS task_type,
        COUNT(*) AS samples,
        COALESCE(SUM(turns), 0) AS turns,
        flatten(list(reasons)) AS reasons
    FROM members
    GROUP BY tenant, is_group, prompt
    HAVING
        bool_and(is_lost)
        AND (CAST($from_time AS TIMESTAMPTZ) IS NULL OR MAX(lost_at) >= $from_time)
)

SELECT
    task_type,
    COUNT(*) AS prompts,
    CAST(SUM(samples) AS BIGINT) AS samples,
    CAST(SUM(turns) AS BIGINT) AS turns,
    list_sort(list_distinct(flatten(list(reasons)))) AS reasons
FROM prompts
GROUP BY task_type
ORDER BY task_type
