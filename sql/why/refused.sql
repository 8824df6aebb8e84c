-- Which rules refused how many samples since the last batch, and when was the last?
-- dialect: duckdb
-- params: since TIMESTAMPTZ
-- returns: rule VARCHAR, field VARCHAR, samples BIGINT, first_at TIMESTAMPTZ
SELECT
    finding.rule AS rule,
    finding.field AS field,
    COUNT(*) AS samples,
    MIN(quarantined_at) AS first_at
FROM (
    SELECT
        quarantined_at,
        unnest(findings) AS finding
    FROM quarantine
    WHERE
        of_table = 'samples'
        AND (CAST($since AS TIMESTAMPTZ) IS NULL OR quarantined_at > $since)
) AS found
GROUP BY finding.rule, finding.field
ORDER BY samples DESC, rule, field
