-- Which batches were made and not acked?
-- params: stream VARCHAR
-- returns: batch_id VARCHAR, turns BIGINT (turns), learner VARCHAR, assembled_at TIMESTAMPTZ,
--   lease_until TIMESTAMPTZ
SELECT
    batch_id,
    turns,
    learner,
    assembled_at,
    lease_until
FROM batch
WHERE state = 'assigned' AND stream = $stream
ORDER BY sequence
