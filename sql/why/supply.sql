-- Who produces, and what may still come?
-- dialect: duckdb
-- params: timeout_seconds DOUBLE
-- returns: producers BIGINT, live BIGINT, last_beat_at TIMESTAMPTZ, exhausted BIGINT,
--   in_flight BIGINT (samples of live producers), in_flight_turns BIGINT (turns, where known)
SELECT
    COUNT(*) AS producers,
    COUNT(*) FILTER (WHERE is_live) AS live,
    MAX(beat_at) AS last_beat_at,
    COUNT(*) FILTER (WHERE is_exhausted) AS exhausted,
    CAST(COALESCE(SUM(in_flight) FILTER (WHERE is_live), 0) AS BIGINT) AS in_flight,
    CASE
        WHEN COUNT(*) FILTER (WHERE is_live AND in_flight > 0 AND in_flight_turns IS NULL) = 0
            THEN CAST(COALESCE(SUM(in_flight_turns) FILTER (WHERE is_live), 0) AS BIGINT)
    END AS in_flight_turns
FROM (
    SELECT
        s.*,
        epoch_us(m.now) - epoch_us(s.beat_at) <= CAST($timeout_seconds AS DOUBLE) * 1000000
            AS is_live
    FROM supply AS s
    CROSS JOIN moment AS m
) AS judged
