-- When did the last sample arrive, and when was the last batch made?
-- params: stream VARCHAR
-- returns: last_arrival_at TIMESTAMPTZ, last_batch_at TIMESTAMPTZ, last_published_at TIMESTAMPTZ,
--   current_version BIGINT
SELECT
    (SELECT MAX(ingested_at) FROM samples) AS last_arrival_at,
    (
        SELECT MAX(decided_at)
        FROM dispositions
        WHERE kind = 'pass' AND batch_id IS NOT NULL AND stream = $stream
    ) AS last_batch_at,
    (SELECT MAX(published_at) FROM weights) AS last_published_at,
    (SELECT MAX(weight_version) FROM weights) AS current_version
