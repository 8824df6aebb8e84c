-- Which rules refused how many samples since then that never came in, and how many turns did
-- these state?
-- A second delivery under a known id is no loss, nor is a row that was let in once it was mended.
-- dialect: duckdb
-- params: stream VARCHAR, since TIMESTAMPTZ
-- returns: rule VARCHAR, field VARCHAR, samples BIGINT, turns BIGINT (turns, where stated),
--   unstated BIGINT (samples that state no turns), first_at TIMESTAMPTZ
WITH refused AS (
    SELECT
        quarantined_at,
        row_id,
        findings,
        -- Anything may stand in a refused row: what is no count of turns states none.
        TRY_CAST(content ->> '$.turns' AS INTEGER) AS turns
    FROM quarantine
    WHERE
        of_table = 'samples'
        AND (CAST($since AS TIMESTAMPTZ) IS NULL OR quarantined_at > $since)
        -- The word is looked for first: to take JSON apart costs more than all the rest.
        AND CASE
            WHEN contains(content, '"replay"')
                THEN COALESCE(content ->> '$.origin', 'original') = 'replay'
            ELSE FALSE
        END = ($stream = 'replay')
),

lost AS (
    SELECT
        r.quarantined_at,
        CASE WHEN r.turns > 0 THEN r.turns END AS turns,
        unnest(r.findings) AS finding
    FROM refused AS r
    WHERE NOT EXISTS (
        SELECT 1
        FROM samples AS s
        WHERE s.sample_id = r.row_id
    )
)

SELECT
    finding.rule AS rule,
    finding.field AS field,
    COUNT(*) AS samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
    COUNT(*) - COUNT(turns) AS unstated,
    MIN(quarantined_at) AS first_at
FROM lost
GROUP BY finding.rule, finding.field
ORDER BY samples DESC, rule, field
