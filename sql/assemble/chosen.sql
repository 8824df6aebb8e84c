-- Step 11. Which samples make the batch, in which order?
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, unit UBIGINT, ordinal BIGINT (0 = first), turns BIGINT (turns),
--   task_type VARCHAR, stratum VARCHAR, is_failed BOOLEAN, is_truncated BOOLEAN
CREATE OR REPLACE TEMP TABLE chosen AS
SELECT
    s.position,
    o.unit,
    row_number() OVER (ORDER BY o.ordinal, s.since NULLS LAST, s.position) - 1 AS ordinal,
    s.turns,
    s.task_type,
    o.stratum,
    s.is_failed,
    s.is_truncated
FROM cut AS o
CROSS JOIN verdict AS v
INNER JOIN seen AS s
    ON s.unit = o.unit
WHERE
    v.blocker IS NULL
    AND s.is_open
    AND s.state = 'pending'
    AND s.position NOT IN (SELECT position FROM discards)
