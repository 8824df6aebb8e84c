-- Step 4, without groups. Which open samples are discarded, and why?
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, reason VARCHAR, reasons VARCHAR[], exceeded_limit DOUBLE
CREATE OR REPLACE TEMP TABLE discards AS
SELECT
    p.position,
    COALESCE(p.reasons[1], u.verdict) AS reason,
    COALESCE(p.reasons, [u.verdict]) AS reasons,
    CASE COALESCE(p.reasons[1], u.verdict)
        WHEN 'age_versions' THEN CAST(p.max_age_versions AS DOUBLE)
        WHEN 'wait_seconds' THEN p.max_wait_seconds
        WHEN 'oversize' THEN CAST(r.max_unit_turns AS DOUBLE)
    END AS exceeded_limit
FROM pool AS p
INNER JOIN units AS u
    ON u.unit = p.unit
CROSS JOIN rules AS r
WHERE u.verdict IN ('stale', 'oversize')
