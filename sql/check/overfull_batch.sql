-- Which batches went on after their turns were complete?
-- A batch ends with the first unit at which its turns reach T: without its last unit it is short.
-- dialect: duckdb
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
WITH units AS (
    SELECT
        batch_id,
        unit,
        MIN(ordinal) AS ordinal,
        MIN(target_turns) AS target_turns,
        SUM(turns) AS turns
    FROM batch_sample
    GROUP BY batch_id, unit
)

SELECT
    'overfull_batch' AS rule,
    batch_id AS subject,
    CAST(SUM(turns) AS VARCHAR) || ' turns, the last unit has '
        || CAST(arg_max(turns, ordinal) AS VARCHAR) || ', and T is '
        || CAST(MIN(target_turns) AS VARCHAR) AS detail
FROM units
GROUP BY batch_id
HAVING SUM(turns) - arg_max(turns, ordinal) >= MIN(target_turns)
ORDER BY subject
