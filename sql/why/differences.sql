-- In which rows does a decision that was made again differ from what was noted?
-- dialect: duckdb
-- params: none
-- returns: side VARCHAR (noted, derived), position BIGINT, sample_id VARCHAR, kind VARCHAR,
--   ordinal INTEGER, reason VARCHAR, reasons VARCHAR[], reward DOUBLE,
--   age_versions BIGINT (versions), age_seconds DOUBLE (s), exceeded_limit DOUBLE
SELECT
    'noted' AS side,
    *
FROM (SELECT * FROM noted EXCEPT ALL SELECT * FROM derived) AS only_noted
UNION ALL
SELECT
    'derived' AS side,
    *
FROM (SELECT * FROM derived EXCEPT ALL SELECT * FROM noted) AS only_derived
ORDER BY position, side
