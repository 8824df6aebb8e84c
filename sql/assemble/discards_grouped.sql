-- Step 4, with groups. Which open samples are discarded, and why?
-- Over the line alone: age_versions, wait_seconds. With their group: sibling, wait_exceeded (late
-- member of a decided group), group_incomplete, flat, oversize. Beyond its size: group_extra.
-- A flat group is too_easy or too_hard besides.
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, reason VARCHAR, reasons VARCHAR[], exceeded_limit DOUBLE
CREATE OR REPLACE TEMP TABLE discards AS
WITH judged AS (
    SELECT
        p.position,
        p.reasons AS line_reasons,
        p.max_age_versions,
        p.max_wait_seconds,
        CASE
            WHEN u.verdict = 'late' THEN 'wait_exceeded'
            WHEN u.verdict IN ('sibling', 'group_incomplete', 'flat', 'oversize') THEN u.verdict
            WHEN u.verdict = 'ready' AND m.role = 'extra' THEN 'group_extra'
            WHEN u.verdict = 'ready' AND m.role = 'awaited' THEN 'wait_exceeded'
        END AS unit_reason,
        CASE
            WHEN u.verdict <> 'flat' THEN NULL
            WHEN u.least_reward < COALESCE(t.success_at, r.success_at) THEN 'too_hard'
            ELSE 'too_easy'
        END AS flat_side
    FROM pool AS p
    INNER JOIN units AS u
        ON u.unit = p.unit
    INNER JOIN members AS m
        ON m.position = p.position
    CROSS JOIN rules AS r
    LEFT JOIN task_type_rule AS t
        ON t.name = p.task_type
)

SELECT
    j.position,
    COALESCE(j.line_reasons[1], j.unit_reason) AS reason,
    list_filter(
        list_concat(COALESCE(j.line_reasons, []), [j.unit_reason, j.flat_side]),
        lambda named: named IS NOT NULL
    ) AS reasons,
    CASE COALESCE(j.line_reasons[1], j.unit_reason)
        WHEN 'age_versions' THEN CAST(j.max_age_versions AS DOUBLE)
        WHEN 'wait_seconds' THEN j.max_wait_seconds
        WHEN 'wait_exceeded' THEN r.settle_seconds
        WHEN 'group_incomplete' THEN CAST(r.min_members AS DOUBLE)
        WHEN 'group_extra' THEN CAST(r.group_size AS DOUBLE)
        WHEN 'flat' THEN r.flat_tolerance
        WHEN 'oversize' THEN CAST(r.max_unit_turns AS DOUBLE)
    END AS exceeded_limit
FROM judged AS j
CROSS JOIN rules AS r
WHERE j.line_reasons IS NOT NULL OR j.unit_reason IS NOT NULL
