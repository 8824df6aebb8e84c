-- Which samples ended twice, or had anything decided about them after their end?
-- Trained and discarded are ends.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'two_ends' AS rule,
    sample_id AS subject,
    CAST(COUNT(*) FILTER (WHERE kind = 'trained') AS VARCHAR) || ' times trained, '
        || CAST(COUNT(*) FILTER (WHERE kind = 'discarded') AS VARCHAR)
        || ' times discarded, last decided at ' || CAST(MAX(sequence) AS VARCHAR) AS detail
FROM dispositions
WHERE sample_id IS NOT NULL
GROUP BY sample_id
HAVING
    COUNT(*) FILTER (WHERE kind IN ('trained', 'discarded')) > 1
    OR MAX(sequence) > MIN(sequence) FILTER (WHERE kind IN ('trained', 'discarded'))
ORDER BY subject
