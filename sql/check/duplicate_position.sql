-- Which positions are held by two samples?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (position), detail VARCHAR
SELECT
    'duplicate_position' AS rule,
    CAST(position AS VARCHAR) AS subject,
    CAST(COUNT(*) AS VARCHAR) || ' rows, ' || MIN(sample_id) || ' to ' || MAX(sample_id) AS detail
FROM samples
GROUP BY position
HAVING COUNT(*) > 1
ORDER BY subject
