-- How long did the last 50 runs of a task type take, under one weight version or under any?
-- A run that a limit or a deadline cut short counts by the time for which it held its place;
-- one whose environment broke says nothing. Newest first.
-- params: task_type VARCHAR, weight_version BIGINT
-- returns: sample_id VARCHAR, weight_version BIGINT, finished_at TIMESTAMPTZ, seconds DOUBLE (s),
--   expected_seconds DOUBLE (s; the estimate at enqueue, null where there was none)
SELECT
    sample_id,
    weight_version,
    finished_at,
    CAST(EXTRACT(EPOCH FROM finished_at - started_at) AS DOUBLE) AS seconds,
    expected_seconds
FROM samples
WHERE
    task_type = $task_type
    AND (CAST($weight_version AS BIGINT) IS NULL OR weight_version = $weight_version)
    AND status IN ('completed', 'truncated', 'timed_out')
    AND started_at IS NOT NULL
    AND finished_at IS NOT NULL
ORDER BY finished_at DESC, position DESC
LIMIT 50
