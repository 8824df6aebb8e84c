-- Step 10, the verdict. May the batch be emitted?
-- It is not, if it is short (unless the data have ended and a short one is wanted), if nothing in
-- it carries a gradient, or while a stratum lacks its least share and the wait for it is not over;
-- that wait runs from the moment at which the pending turns first sufficed.
-- blocker: NULL, short, no_gradient, least_share. Where nothing carries a gradient, flat_sides
-- says on which side of success the equal rewards lie.
-- dialect: duckdb
-- params: none
-- returns: blocker VARCHAR, is_partial BOOLEAN, unmet VARCHAR[],
--   enough_since TIMESTAMPTZ, flat_sides VARCHAR[] (too_easy, too_hard)
CREATE OR REPLACE TEMP TABLE verdict AS
WITH summed AS (
    SELECT
        COALESCE(SUM(w.turns), 0) AS turns,
        COALESCE(bool_or(w.has_gradient), FALSE) AS has_gradient,
        list_sort(
            list(DISTINCT CASE WHEN w.failed_turns > 0 THEN 'too_hard' ELSE 'too_easy' END)
        ) AS sides
    FROM cut AS w
),

lacking AS (
    -- A stratum of which nothing ever came lacks its share too.
    SELECT
        COALESCE(list(l.name ORDER BY l.name), []) AS unmet
    FROM minimum_share AS l
    CROSS JOIN rules AS r
    LEFT JOIN (SELECT stratum, SUM(turns) AS turns FROM cut GROUP BY stratum) AS w
        ON w.stratum = l.name
    WHERE COALESCE(w.turns, 0) < l.share * r.turns - 1e-6
),

filling AS (
    SELECT MIN(since) AS enough_since
    FROM (
        SELECT
            since,
            SUM(turns) OVER (
                ORDER BY since NULLS LAST, first_position
                ROWS UNBOUNDED PRECEDING
            ) AS so_far
        FROM ordered
    ) AS waiting
    CROSS JOIN rules AS r
    WHERE so_far >= r.turns
),

judged AS (
    SELECT
        s.has_gradient,
        CASE WHEN s.has_gradient THEN [] ELSE COALESCE(s.sides, []) END AS flat_sides,
        s.turns < r.turns AS is_short,
        s.turns > 0 AND r.is_partial_wanted AS may_be_short,
        len(l.unmet) > 0
            AND COALESCE(
                epoch_us(m.now) - epoch_us(f.enough_since) < r.least_share_wait_seconds * 1000000,
                FALSE
            ) AS waits_for_share,
        l.unmet,
        f.enough_since
    FROM summed AS s
    CROSS JOIN lacking AS l
    CROSS JOIN filling AS f
    CROSS JOIN rules AS r
    CROSS JOIN moment AS m
)

SELECT
    CASE
        WHEN is_short AND NOT may_be_short THEN 'short'
        WHEN NOT has_gradient THEN 'no_gradient'
        WHEN waits_for_share THEN 'least_share'
    END AS blocker,
    is_short AS is_partial,
    unmet,
    enough_since,
    flat_sides
FROM judged
