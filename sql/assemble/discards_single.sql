-- Step 3, without groups. Which open samples are discarded, and why?
-- The reasons of the line stand in the configured order; the first is the primary one.
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, reason VARCHAR, reasons VARCHAR[], exceeded_limit DOUBLE
CREATE OR REPLACE TEMP TABLE discards AS
WITH named AS (
    SELECT
        s.position,
        s.duration_class,
        CASE
            WHEN s.is_over_age OR s.is_over_wait
                THEN list_filter(
                    r.reason_order,
                    lambda reason: CASE reason
                        WHEN 'age_versions' THEN s.is_over_age
                        ELSE s.is_over_wait
                    END
                )
            ELSE ['oversize']
        END AS reasons
    FROM seen AS s
    CROSS JOIN rules AS r
    WHERE
        s.is_open
        AND (
            s.is_over_age
            OR s.is_over_wait
            OR s.state = 'pending' AND NOT s.is_ahead AND s.turns > r.max_unit_turns
        )
)

SELECT
    n.position,
    n.reasons[1] AS reason,
    n.reasons,
    CASE n.reasons[1]
        WHEN 'age_versions'
            THEN CAST(COALESCE(c.max_age_versions, r.max_age_versions) AS DOUBLE)
        WHEN 'wait_seconds' THEN COALESCE(c.max_wait_seconds, r.max_wait_seconds)
        ELSE CAST(r.max_unit_turns AS DOUBLE)
    END AS exceeded_limit
FROM named AS n
CROSS JOIN rules AS r
LEFT JOIN duration_class AS c
    ON c.name = n.duration_class
