-- Step 5, the failure quota. Behind which passed units of its task type may a failed one stand?
-- A unit with at most the share f of failed turns gives slack, one with more needs it. The n-th
-- needy unit stands right behind the first unit at which the slack covers the needs up to its
-- own, so that failed / (failed + passed) <= f at every prefix; where there is none it is held.
-- So f is the target too: a failed unit comes as soon as it may. Truncated turns give no slack,
-- for the truncation line may hold them.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, place DOUBLE (order within the task type), is_needy BOOLEAN,
--   is_held BOOLEAN, and the columns of front
CREATE OR REPLACE TEMP TABLE quota AS
WITH giving AS (
    SELECT
        *,
        CAST(row_number() OVER oldest AS DOUBLE) AS place,
        SUM(CASE WHEN truncated_turns = 0 THEN slack ELSE 0 END) OVER oldest AS slack_so_far
    FROM front
    WHERE slack >= 0
    WINDOW oldest AS (
        PARTITION BY task_type
        ORDER BY since NULLS LAST, first_position
        ROWS UNBOUNDED PRECEDING
    )
),

needing AS (
    SELECT
        *,
        -- A hair less than the sum, so that rounding holds nobody back.
        SUM(-slack) OVER oldest - 1e-6 AS need_so_far,
        row_number() OVER oldest AS nth
    FROM front
    WHERE slack < 0
    WINDOW oldest AS (
        PARTITION BY task_type
        ORDER BY since NULLS LAST, first_position
        ROWS UNBOUNDED PRECEDING
    )
),

steps AS (
    SELECT
        task_type,
        slack_so_far,
        MIN(place) AS place
    FROM giving
    GROUP BY task_type, slack_so_far
)

SELECT
    * EXCLUDE (slack_so_far),
    FALSE AS is_needy,
    FALSE AS is_held
FROM giving
UNION ALL BY NAME
SELECT
    n.* EXCLUDE (need_so_far, nth),
    b.place + CAST(n.nth AS DOUBLE) / 1e9 AS place,
    TRUE AS is_needy,
    b.place IS NULL AS is_held
FROM needing AS n
ASOF LEFT JOIN steps AS b
    ON b.task_type = n.task_type AND b.slack_so_far >= n.need_so_far
