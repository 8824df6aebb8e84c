-- Step 2a, with groups. How does each seen sample stand inside its group?
-- role: kept, extra (beyond the group's size, the youngest), stale, unusable, awaited (its reward
-- is), ahead (its weights are not published), decided (with its group), gone (discarded as stale
-- before), left (discarded before because its group was whole without it; the group itself may be
-- undecided still, or again). A late report is no member: another attempt has taken its place.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, position BIGINT, role VARCHAR, since TIMESTAMPTZ,
--   turns BIGINT (turns), is_failed BOOLEAN, is_truncated BOOLEAN, failure_share DOUBLE,
--   reward DOUBLE, task_type VARCHAR, stratum VARCHAR, duration_class VARCHAR,
--   is_over_age BOOLEAN, is_over_wait BOOLEAN
CREATE OR REPLACE TEMP TABLE members AS
WITH cast_roles AS (
    SELECT
        *,
        CASE
            WHEN state IN ('assigned', 'trained') THEN 'decided'
            WHEN state = 'discarded' AND reason IN ('age_versions', 'wait_seconds') THEN 'gone'
            WHEN state = 'discarded' AND reason IN ('group_extra', 'wait_exceeded') THEN 'left'
            WHEN state = 'discarded' THEN 'decided'
            WHEN state IN ('never_trainable', 'evidence_missing') THEN 'unusable'
            WHEN is_over_age OR is_over_wait THEN 'stale'
            WHEN state = 'awaiting_reward' THEN 'awaited'
            WHEN is_ahead THEN 'ahead'
            ELSE 'kept'
        END AS role
    FROM seen
    WHERE is_ours AND reason IS DISTINCT FROM 'late'
),

crowded AS (
    SELECT c.unit
    FROM cast_roles AS c
    CROSS JOIN rules AS r
    WHERE c.role = 'kept'
    GROUP BY c.unit, r.group_size
    HAVING COUNT(*) > r.group_size
),

numbered AS (
    -- Only of crowded groups: to number the members of all would sort every sample.
    SELECT
        position,
        row_number() OVER (PARTITION BY unit ORDER BY since NULLS LAST, position) AS nth
    FROM cast_roles
    WHERE role = 'kept' AND unit IN (SELECT unit FROM crowded)
)

SELECT
    c.unit,
    c.position,
    CASE WHEN n.nth > r.group_size THEN 'extra' ELSE c.role END AS role,
    c.since,
    c.turns,
    c.is_failed,
    c.is_truncated,
    c.failure_share,
    c.reward,
    c.task_type,
    c.stratum,
    c.duration_class,
    c.is_over_age,
    c.is_over_wait
FROM cast_roles AS c
CROSS JOIN rules AS r
LEFT JOIN numbered AS n
    ON n.position = c.position
