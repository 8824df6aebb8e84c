-- Step 11. Which samples make the batch, in which order?
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, unit UBIGINT, ordinal BIGINT (0 = first), turns BIGINT (turns),
--   task_type VARCHAR, stratum VARCHAR, is_failed BOOLEAN, is_truncated BOOLEAN
CREATE OR REPLACE TEMP TABLE chosen AS
SELECT
    p.position,
    o.unit,
    row_number() OVER (ORDER BY o.ordinal, p.since NULLS LAST, p.position) - 1 AS ordinal,
    p.turns,
    p.task_type,
    o.stratum,
    p.reward < COALESCE(t.success_at, r.success_at) AS is_failed,
    p.status = 'truncated' AS is_truncated
FROM ordered AS o
CROSS JOIN rules AS r
CROSS JOIN verdict AS v
INNER JOIN pool AS p
    ON p.unit = o.unit
LEFT JOIN task_type_rule AS t
    ON t.name = p.task_type
WHERE
    v.blocker IS NULL
    AND o.turns_before < r.turns
    AND p.state = 'pending'
    AND p.position NOT IN (SELECT position FROM discards)
