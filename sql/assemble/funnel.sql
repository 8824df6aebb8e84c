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
    INNER JOIN seen AS p
        ON p.position = d.position
    UNION ALL
    SELECT 8, 'kept', 'over_soft_limit', task_type, 1, turns
    FROM seen
    WHERE is_open AND is_soft AND NOT is_over_age AND NOT is_over_wait
    UNION ALL
    SELECT
        CASE WHEN reason IN ('failure_quota', 'truncation_line') THEN 4 ELSE 3 END,
        CASE WHEN reason IN ('failure_quota', 'truncation_line') THEN 'held' ELSE 'waiting' END,
        reason,
        task_type,
        samples,
        turns
    FROM held
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
