-- Who produces, and what may still come? What a dead producer last said is in flight will not.
-- dialect: duckdb
-- params: timeout_seconds DOUBLE
-- returns: producers BIGINT, live BIGINT, last_beat_at TIMESTAMPTZ,
--   is_exhausted BOOLEAN (no live producer has a task left, and one has said so),
--   exhausted_at TIMESTAMPTZ (when the last of them said so),
--   in_flight BIGINT (samples of live producers), in_flight_turns BIGINT (turns, where known)
SELECT
    COUNT(*) AS producers,
    COUNT(*) FILTER (WHERE is_live) AS live,
    MAX(beat_at) AS last_beat_at,
    COALESCE(bool_or(is_exhausted) AND bool_and(is_exhausted OR NOT is_live), FALSE)
        AS is_exhausted,
    MAX(exhausted_at) AS exhausted_at,
    CAST(COALESCE(SUM(in_flight) FILTER (WHERE is_live), 0) AS BIGINT) AS in_flight,
    CASE
        WHEN COUNT(*) FILTER (WHERE is_live AND in_flight > 0 AND in_flight_turns IS NULL) = 0
            THEN CAST(COALESCE(SUM(in_flight_turns) FILTER (WHERE is_live), 0) AS BIGINT)
    END AS in_flight_turns
FROM (
    SELECT
        s.*,
        e.exhausted_at,
        epoch_us(m.now) - epoch_us(s.beat_at) <= CAST($timeout_seconds AS DOUBLE) * 1000000
            AS is_live
    FROM supply AS s
    CROSS JOIN moment AS m
    LEFT JOIN (
        SELECT
            producer,
            MIN(beat_at) AS exhausted_at
        FROM heartbeats
        WHERE is_exhausted
        GROUP BY producer
    ) AS e
        ON e.producer = s.producer AND s.is_exhausted
) AS judged
