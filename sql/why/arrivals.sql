-- When did the last sample arrive, when was the last batch made that still stands, and how far
-- are the weights: published, and stamped on samples?
-- params: stream VARCHAR
-- returns: last_arrival_at TIMESTAMPTZ, stamped_version BIGINT (newest that made a sample),
--   last_batch_at TIMESTAMPTZ, last_published_at TIMESTAMPTZ, current_version BIGINT
SELECT
    a.last_arrival_at,
    a.stamped_version,
    b.last_batch_at,
    w.last_published_at,
    w.current_version
FROM (
    SELECT
        MAX(ingested_at) AS last_arrival_at,
        MAX(weight_version) AS stamped_version
    FROM samples
    WHERE (origin = 'replay') = ($stream = 'replay')
) AS a
CROSS JOIN (
    SELECT MAX(assembled_at) AS last_batch_at
    FROM batch
    WHERE stream = $stream AND state <> 'released'
) AS b
CROSS JOIN (
    SELECT
        MAX(published_at) AS last_published_at,
        MAX(weight_version) AS current_version
    FROM weights
) AS w
