-- Step 3, with groups. Which open samples are discarded, and why?
-- Over the line alone: age_versions, wait_seconds, in the configured order. With their group:
-- sibling, wait_exceeded (late member of a decided group), group_incomplete, flat, oversize.
-- Beyond its size: group_extra. A flat group is too_easy or too_hard besides.
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, reason VARCHAR, reasons VARCHAR[], exceeded_limit DOUBLE
CREATE OR REPLACE TEMP TABLE discards AS
WITH judged AS (
    SELECT
        m.position,
        m.duration_class,
        m.role = 'stale' AND m.is_over_age AS is_over_age,
        m.role = 'stale' AND m.is_over_wait AS is_over_wait,
        CASE
            WHEN u.verdict = 'late' THEN 'wait_exceeded'
            WHEN u.verdict IN ('sibling', 'group_incomplete', 'flat', 'oversize') THEN u.verdict
            WHEN u.verdict = 'ready' AND m.role = 'extra' THEN 'group_extra'
            WHEN u.verdict = 'ready' AND m.role = 'awaited' THEN 'wait_exceeded'
        END AS unit_reason,
        CASE
            WHEN u.verdict <> 'flat' THEN NULL
            WHEN u.failed_turns > 0 THEN 'too_hard'
            ELSE 'too_easy'
        END AS flat_side
    FROM members AS m
    INNER JOIN units AS u
        ON u.unit = m.unit
    WHERE
        m.role = 'stale'
        OR (u.verdict = 'ready' AND m.role IN ('extra', 'awaited'))
        OR (
            u.verdict IN ('late', 'sibling', 'group_incomplete', 'flat', 'oversize')
            AND m.role IN ('kept', 'extra', 'awaited', 'ahead')
        )
),

named AS (
    SELECT
        j.position,
        j.duration_class,
        list_concat(
            list_filter(
                r.reason_order,
                lambda reason: CASE reason
                    WHEN 'age_versions' THEN j.is_over_age
                    ELSE j.is_over_wait
                END
            ),
            list_filter([j.unit_reason, j.flat_side], lambda named: named IS NOT NULL)
        ) AS reasons
    FROM judged AS j
    CROSS JOIN rules AS r
)

SELECT
    n.position,
    n.reasons[1] AS reason,
    n.reasons,
    CASE n.reasons[1]
        WHEN 'age_versions'
            THEN CAST(COALESCE(c.max_age_versions, r.max_age_versions) AS DOUBLE)
        WHEN 'wait_seconds' THEN COALESCE(c.max_wait_seconds, r.max_wait_seconds)
        WHEN 'wait_exceeded' THEN r.settle_seconds
        WHEN 'group_incomplete' THEN CAST(r.min_members AS DOUBLE)
        WHEN 'group_extra' THEN CAST(r.group_size AS DOUBLE)
        WHEN 'flat' THEN r.flat_tolerance
        WHEN 'oversize' THEN CAST(r.max_unit_turns AS DOUBLE)
    END AS exceeded_limit
FROM named AS n
CROSS JOIN rules AS r
LEFT JOIN duration_class AS c
    ON c.name = n.duration_class
