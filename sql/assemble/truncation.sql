-- Step 6, the truncation line. Which units with truncated turns are held?
-- Oldest first up to the set share of the batch's turns.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT
CREATE OR REPLACE TEMP TABLE truncation AS
WITH cut_short AS (
    SELECT
        q.unit,
        q.first_position,
        q.since,
        q.truncated_turns,
        -- A hair more, so that rounding holds nobody back: 0.29 * 100 is less than 29.
        r.truncated_share * r.turns + 1e-6 AS most_turns
    FROM quota AS q
    CROSS JOIN rules AS r
    WHERE q.truncated_turns > 0 AND NOT q.is_held AND r.truncated_share < 1
),

summed AS (
    SELECT
        unit,
        most_turns,
        SUM(truncated_turns) OVER (
            ORDER BY since NULLS LAST, first_position
            ROWS UNBOUNDED PRECEDING
        ) AS so_far
    FROM cut_short
)

SELECT unit
FROM summed
WHERE so_far > most_turns
