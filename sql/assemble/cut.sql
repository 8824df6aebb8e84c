-- Step 9, the cut. Which units would make the batch?
-- It ends with the first unit at which the turns reach the target. If nothing in it carries a
-- gradient, but a unit further back would bring one, that comes last, in place of those that it
-- makes needless: else the same equal rewards would stand in the way of all behind them until they
-- are too old. A needy unit cannot, for it would overtake those that it stands behind.
-- dialect: duckdb
-- params: none
-- returns: the columns of ordered, has_gradient BOOLEAN (of the whole)
CREATE OR REPLACE TEMP TABLE cut AS
WITH oldest AS (
    SELECT o.*
    FROM ordered AS o
    CROSS JOIN rules AS r
    WHERE o.turns_before < r.turns
),

spread AS (
    SELECT
        MIN(o.least_reward) AS least_reward,
        MAX(o.most_reward) AS most_reward,
        COALESCE(
            CASE
                WHEN ANY_VALUE(r.group_size) IS NOT NULL THEN bool_or(NOT o.is_flat)
                ELSE MAX(o.most_reward) - MIN(o.least_reward) > ANY_VALUE(r.flat_tolerance)
            END,
            FALSE
        ) AS has_gradient
    FROM oldest AS o
    CROSS JOIN rules AS r
),

other AS (
    SELECT o.*
    FROM ordered AS o
    CROSS JOIN spread AS s
    CROSS JOIN rules AS r
    WHERE
        NOT s.has_gradient
        AND o.turns_before >= r.turns
        AND NOT o.is_needy
        AND CASE
            WHEN r.group_size IS NOT NULL THEN NOT o.is_flat
            ELSE greatest(o.most_reward, s.most_reward) - least(o.least_reward, s.least_reward)
                > r.flat_tolerance
        END
    ORDER BY o.ordinal
    LIMIT 1
)

SELECT
    o.*,
    s.has_gradient OR (SELECT COUNT(*) FROM other) > 0 AS has_gradient
FROM oldest AS o
CROSS JOIN spread AS s
CROSS JOIN rules AS r
WHERE
    -- The first one stays, however large the other is: it takes two.
    o.turns_before = 0
    OR o.turns_before < r.turns - COALESCE((SELECT turns FROM other), 0)
UNION ALL
SELECT
    *,
    TRUE AS has_gradient
FROM other
