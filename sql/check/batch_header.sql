-- Which batches state other figures than their rows hold, or have no header or two?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
WITH stated AS (
    SELECT
        batch_id,
        COUNT(*) AS headers,
        MAX(samples) AS samples,
        MAX(turns) AS turns,
        MAX(truncated_turns) AS truncated_turns
    FROM dispositions
    WHERE kind = 'pass' AND batch_id IS NOT NULL
    GROUP BY batch_id
),

held AS (
    SELECT
        d.batch_id,
        COUNT(*) AS samples,
        COALESCE(SUM(s.turns), 0) AS turns,
        COALESCE(SUM(s.turns) FILTER (WHERE s.status = 'truncated'), 0) AS truncated_turns
    FROM dispositions AS d
    LEFT JOIN samples AS s
        ON s.position = d.position AND s.sample_id = d.sample_id
    WHERE d.kind = 'assigned'
    GROUP BY d.batch_id
)

SELECT
    'batch_header' AS rule,
    COALESCE(p.batch_id, h.batch_id) AS subject,
    CAST(COALESCE(p.headers, 0) AS VARCHAR) || ' headers; stated and held: samples '
        || COALESCE(CAST(p.samples AS VARCHAR), '?') || ' and '
        || CAST(COALESCE(h.samples, 0) AS VARCHAR)
        || ', turns ' || COALESCE(CAST(p.turns AS VARCHAR), '?') || ' and '
        || CAST(COALESCE(h.turns, 0) AS VARCHAR)
        || ', truncated turns ' || COALESCE(CAST(p.truncated_turns AS VARCHAR), '?') || ' and '
        || CAST(COALESCE(h.truncated_turns, 0) AS VARCHAR) AS detail
FROM stated AS p
FULL JOIN held AS h
    ON h.batch_id = p.batch_id
WHERE
    COALESCE(p.headers, 0) <> 1
    OR p.samples IS DISTINCT FROM COALESCE(h.samples, 0)
    OR p.turns IS DISTINCT FROM COALESCE(h.turns, 0)
    OR p.truncated_turns IS DISTINCT FROM COALESCE(h.truncated_turns, 0)
ORDER BY subject
