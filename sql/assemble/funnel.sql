-- How many samples and turns stopped at every step of this pass, and why?
-- Of samples below the low-water mark nothing is open, so they are not counted here. Those over a
-- soft limit are counted a second time: they were kept all the same.
-- dialect: duckdb
-- params: none
-- returns: step VARCHAR, reason VARCHAR, task_type VARCHAR, samples BIGINT, turns BIGINT (turns)
WITH stopped AS (
    SELECT 1 AS place, 'held' AS step, state AS reason, task_type, 1 AS samples, turns
    FROM seen
    WHERE is_ours AND state IN ('never_trainable', 'evidence_missing')
    UNION ALL
    SELECT 2, 'discarded', d.reason, p.task_type, 1, p.turns
    FROM discards AS d
    INNER JOIN pool AS p
        ON p.position = d.position
    UNION ALL
    SELECT
        3,
        'waiting',
        CASE
            WHEN verdict = 'ahead' THEN 'unpublished'
            WHEN first_position = unit THEN 'awaiting_reward'
            ELSE 'group_open'
        END,
        task_type,
        open_samples,
        open_turns
    FROM units
    WHERE verdict IN ('waiting', 'ahead')
    UNION ALL
    SELECT 8, 'kept', 'over_soft_limit', task_type, 1, turns
    FROM pool
    WHERE is_soft AND reasons IS NULL
    UNION ALL
    SELECT 4, 'held', 'failure_quota', task_type, members, turns
    FROM quota
    WHERE is_held
    UNION ALL
    SELECT 5, 'held', 'truncation_line', task_type, members, turns
    FROM quota
    WHERE unit IN (SELECT unit FROM truncation)
    UNION ALL
    SELECT 6, 'ready', 'ready', task_type, members, turns
    FROM units
    WHERE verdict = 'ready'
    UNION ALL
    SELECT 7, 'assigned', 'assigned', task_type, 1, turns
    FROM chosen
)

SELECT
    step,
    reason,
    task_type,
    CAST(SUM(samples) AS BIGINT) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns
FROM stopped
GROUP BY place, step, reason, task_type
ORDER BY place, reason, task_type
