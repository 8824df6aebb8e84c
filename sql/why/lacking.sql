-- Which evidence do the samples lack that are held for it?
-- dialect: duckdb
-- params: none
-- returns: gap VARCHAR, samples BIGINT, turns BIGINT (turns), first_at TIMESTAMPTZ
SELECT
    gap,
    COUNT(*) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
    MIN(ingested_at) AS first_at
FROM (
    SELECT
        s.turns,
        s.ingested_at,
        unnest(s.gaps) AS gap
    FROM samples AS s
    INNER JOIN seen AS w
        ON w.position = s.position
    WHERE w.is_ours AND w.state = 'evidence_missing'
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
