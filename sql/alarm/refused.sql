-- How many samples did the gate refuse since a moment, and by which rules?
-- The rules are counted by rows: one row may break several.
-- dialect: duckdb
-- params: from_time TIMESTAMPTZ
-- returns: arrivals BIGINT (samples), rules VARCHAR (rule × samples, most first)
WITH refused AS (
    SELECT
        quarantine_id,
        list_distinct(list_transform(findings, lambda finding: finding.rule)) AS rules
    FROM quarantine
    WHERE
        of_table = 'samples'
        AND (
            CAST($from_time AS TIMESTAMPTZ) IS NULL
            OR quarantined_at >= CAST($from_time AS TIMESTAMPTZ)
        )
),

counted AS (
    SELECT
        rule || ' × ' || CAST(COUNT(*) AS VARCHAR) AS text,
        COUNT(*) AS samples
    FROM (SELECT unnest(rules) AS rule FROM refused) AS named
    GROUP BY rule
)

SELECT
    (SELECT COUNT(*) FROM refused) AS arrivals,
    (SELECT string_agg(text, ', ' ORDER BY samples DESC, text) FROM counted) AS rules
