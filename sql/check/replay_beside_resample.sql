-- Which batches hold replays beside originals or resamples, or the samples of another stream?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
SELECT
    'replay_beside_resample' AS rule,
    batch_id AS subject,
    CAST(COUNT(*) FILTER (WHERE origin = 'replay') AS VARCHAR) || ' replays and '
        || CAST(COUNT(*) FILTER (WHERE origin <> 'replay') AS VARCHAR)
        || ' others in the stream ' || COALESCE(MIN(stream), 'unnamed') AS detail
FROM batch_sample
GROUP BY batch_id
HAVING COUNT(*) FILTER (WHERE (origin = 'replay') <> (COALESCE(stream, '') = 'replay')) > 0
ORDER BY subject
