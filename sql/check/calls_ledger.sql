-- Which samples' ledger of external calls differs from their rows in calls?
-- Only where there are such rows: a producer need not record calls one by one.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'calls_ledger' AS rule,
    s.sample_id AS subject,
    'ledger ' || CAST(s.external_calls AS VARCHAR) || ', rows ' || CAST(c.calls AS VARCHAR)
        AS detail
FROM samples AS s
INNER JOIN (SELECT position, COUNT(*) AS calls FROM calls GROUP BY position) AS c
    ON c.position = s.position
WHERE s.external_calls <> c.calls
ORDER BY subject
