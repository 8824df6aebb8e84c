-- How did the executions end since then whose samples are never trained on, and how many?
-- Late attempts are left out: another attempt at their task has taken their place.
-- params: stream VARCHAR, since TIMESTAMPTZ
-- returns: status VARCHAR, samples BIGINT, turns BIGINT (turns, where known),
--   first_at TIMESTAMPTZ
SELECT
    status,
    COUNT(*) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
    MIN(ingested_at) AS first_at
FROM samples
WHERE
    status NOT IN ('completed', 'truncated', 'late')
    AND (origin = 'replay') = ($stream = 'replay')
    AND (CAST($since AS TIMESTAMPTZ) IS NULL OR ingested_at > $since)
GROUP BY status
ORDER BY samples DESC, status
