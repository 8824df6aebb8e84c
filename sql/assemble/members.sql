-- Step 3a, with groups. How does each seen sample stand inside its group?
-- role: kept, extra (beyond the group's size), stale, unusable, awaited, decided (with its
-- group), gone (discarded alone before).
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, position BIGINT, role VARCHAR, since TIMESTAMPTZ,
--   turns BIGINT (turns), failed_turns BIGINT (turns), truncated_turns BIGINT (turns),
--   reward DOUBLE, task_type VARCHAR, stratum VARCHAR
CREATE OR REPLACE TEMP TABLE members AS
WITH cast_roles AS (
    SELECT
        s.unit,
        s.position,
        CASE
            WHEN s.state IN ('assigned', 'trained') THEN 'decided'
            WHEN s.state = 'discarded' AND s.reason IN ('age_versions', 'wait_seconds')
                THEN 'gone'
            WHEN s.state = 'discarded' THEN 'decided'
            WHEN s.state IN ('never_trainable', 'evidence_missing') THEN 'unusable'
            WHEN p.reasons IS NOT NULL THEN 'stale'
            WHEN s.state = 'awaiting_reward' OR p.is_ahead THEN 'awaited'
            ELSE 'kept'
        END AS role,
        s.since,
        s.turns,
        s.status,
        s.reward,
        s.task_type,
        s.stratum
    FROM seen AS s
    LEFT JOIN pool AS p
        ON p.position = s.position
    WHERE s.is_ours
),

numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY unit, role ORDER BY since NULLS LAST, position) AS nth
    FROM cast_roles
)

SELECT
    n.unit,
    n.position,
    CASE WHEN n.role = 'kept' AND n.nth > r.group_size THEN 'extra' ELSE n.role END AS role,
    n.since,
    n.turns,
    CASE WHEN n.reward < COALESCE(t.success_at, r.success_at) THEN n.turns ELSE 0 END
        AS failed_turns,
    CASE WHEN n.status = 'truncated' THEN n.turns ELSE 0 END AS truncated_turns,
    n.reward,
    n.task_type,
    n.stratum
FROM numbered AS n
CROSS JOIN rules AS r
LEFT JOIN task_type_rule AS t
    ON t.name = n.task_type
