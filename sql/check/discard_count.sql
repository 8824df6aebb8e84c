-- Which passes state another number of discards than they made?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (pass), detail VARCHAR
WITH made AS (
    SELECT
        sequence,
        MAX(CASE WHEN kind = 'pass' THEN COALESCE(discarded, 0) END) AS stated,
        COUNT(*) FILTER (WHERE kind = 'discarded') AS discards
    FROM dispositions
    GROUP BY sequence
)

SELECT
    'discard_count' AS rule,
    'pass ' || CAST(sequence AS VARCHAR) AS subject,
    'stated ' || CAST(COALESCE(stated, 0) AS VARCHAR) || ', made ' || CAST(discards AS VARCHAR)
        AS detail
FROM made
WHERE COALESCE(stated, 0) <> discards
ORDER BY sequence
