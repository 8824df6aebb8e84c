-- What did each producer last say of itself?
-- returns: producer VARCHAR, beat_at TIMESTAMPTZ, in_flight INTEGER (samples),
--   in_flight_turns BIGINT (turns), is_exhausted BOOLEAN
SELECT
    producer,
    beat_at,
    in_flight,
    in_flight_turns,
    is_exhausted
FROM (
    SELECT
        h.*,
        row_number() OVER (
            PARTITION BY h.producer
            ORDER BY h.beat_at DESC NULLS LAST, h.beat_id
        ) AS nth
    FROM heartbeats AS h
) AS ranked
WHERE nth = 1
