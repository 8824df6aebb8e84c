-- Have the data ended: has every live producer said so, and is nothing being made any more?
-- dialect: duckdb
-- params: timeout_seconds DOUBLE
-- returns: has_ended BOOLEAN
SELECT
    COALESCE(
        bool_or(s.is_exhausted)
        AND bool_and(
            s.is_exhausted AND s.in_flight = 0
            OR epoch_us(m.now) - epoch_us(s.beat_at) > CAST($timeout_seconds AS DOUBLE) * 1000000
        ),
        FALSE
    ) AS has_ended
FROM supply AS s
CROSS JOIN moment AS m
