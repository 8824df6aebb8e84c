-- What was each stratum owed after the newest decision?
-- dialect: duckdb
-- params: none
-- returns: balance VARCHAR (JSON)
SELECT balance
FROM latest
WHERE balance IS NOT NULL
ORDER BY sequence DESC
LIMIT 1
