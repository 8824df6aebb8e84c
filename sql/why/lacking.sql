-- Which evidence do the samples lack that came since then and are held for it?
-- dialect: duckdb
-- params: stream VARCHAR, since TIMESTAMPTZ
-- returns: gap VARCHAR, samples BIGINT, turns BIGINT (turns, where known),
--   first_at TIMESTAMPTZ
SELECT
    gap,
    COUNT(*) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
    MIN(ingested_at) AS first_at
FROM (
    SELECT
        turns,
        ingested_at,
        unnest(gaps) AS gap
    FROM samples
    WHERE
        NOT is_traceable
        AND status IN ('completed', 'truncated')
        AND (origin = 'replay') = ($stream = 'replay')
        AND (CAST($since AS TIMESTAMPTZ) IS NULL OR ingested_at > $since)
) AS named
WHERE
    gap IN (
        'attempt',
        'turns',
        'weight_version',
        'image_digest',
        'seed',
        'toolchain_version',
        'dependency_digest',
        'trajectory'
    )
GROUP BY gap
ORDER BY samples DESC, gap
