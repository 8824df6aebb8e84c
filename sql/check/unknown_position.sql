-- Which decisions are about a position at which their sample does not stand?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'unknown_position' AS rule,
    d.sample_id AS subject,
    d.kind || ' at position ' || CAST(d.position AS VARCHAR) || ' in decision '
        || CAST(d.sequence AS VARCHAR) AS detail
FROM dispositions AS d
WHERE
    d.sample_id IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM samples AS s
        WHERE s.position = d.position AND s.sample_id = d.sample_id
    )
ORDER BY subject, d.sequence
