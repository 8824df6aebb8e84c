-- Below which position is nothing open once this pass is committed?
-- Never above $horizon: rows that are still on their way may have positions from there on; and
-- never below $before, where it was. A group that lacks members stays in sight as long as one of
-- them may wait, else a late member of it would be taken for the first of a new group.
-- dialect: duckdb
-- params: horizon BIGINT, before BIGINT
-- returns: low_water BIGINT
WITH short_groups AS (
    SELECT s.unit
    FROM seen AS s
    CROSS JOIN rules AS r
    CROSS JOIN moment AS m
    LEFT JOIN duration_class AS c
        ON c.name = s.duration_class
    WHERE r.group_size IS NOT NULL AND s.reason IS DISTINCT FROM 'late'
    GROUP BY s.unit, r.group_size, m.now
    HAVING
        COUNT(*) < r.group_size
        AND epoch_us(m.now) - epoch_us(MIN(s.since)) <= 1000000
            * MAX(COALESCE(c.max_wait_seconds, r.max_wait_seconds, r.settle_seconds))
)

SELECT greatest(least($horizon, COALESCE(MIN(position), $horizon)), $before) AS low_water
FROM seen
WHERE
    unit IN (SELECT unit FROM short_groups)
    OR (
        state IN ('pending', 'awaiting_reward', 'assigned')
        AND position NOT IN (SELECT position FROM discards)
    )
