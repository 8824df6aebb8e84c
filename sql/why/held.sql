-- What is held back by the pass that would be made now, and may come in later?
-- params: none
-- returns: reason VARCHAR, task_type VARCHAR, samples BIGINT, turns BIGINT (turns),
--   since TIMESTAMPTZ
SELECT
    reason,
    task_type,
    samples,
    turns,
    since
FROM held
ORDER BY reason, task_type
