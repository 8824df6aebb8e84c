-- Which samples are stored twice under one id?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'duplicate_sample' AS rule,
    sample_id AS subject,
    CAST(COUNT(*) AS VARCHAR) || ' rows' AS detail
FROM samples
GROUP BY sample_id
HAVING COUNT(*) > 1
ORDER BY subject
