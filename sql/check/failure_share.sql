-- Where in a batch are failed turns over the task type's share of its turns so far?
-- Looked at after every unit of the order; the first place of each batch and type is told.
-- dialect: duckdb
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
WITH units AS (
    SELECT
        batch_id,
        unit,
        MIN(ordinal) AS ordinal,
        min_by(task_type, position) AS task_type,
        min_by(failure_share, position) AS failure_share,
        SUM(turns) AS turns,
        COALESCE(SUM(turns) FILTER (WHERE is_failed), 0) AS failed_turns
    FROM batch_sample
    GROUP BY batch_id, unit
),

prefixes AS (
    SELECT
        batch_id,
        task_type,
        ordinal,
        failure_share,
        SUM(turns) OVER so_far AS turns,
        SUM(failed_turns) OVER so_far AS failed_turns
    FROM units
    WINDOW so_far AS (
        PARTITION BY batch_id, task_type
        ORDER BY ordinal, unit
        ROWS UNBOUNDED PRECEDING
    )
)

SELECT
    'failure_share' AS rule,
    batch_id AS subject,
    task_type || ' at place ' || CAST(MIN(ordinal) AS VARCHAR) || ': '
        || CAST(min_by(failed_turns, ordinal) AS VARCHAR) || ' of '
        || CAST(min_by(turns, ordinal) AS VARCHAR) || ' turns failed, allowed is a share of '
        || CAST(MIN(failure_share) AS VARCHAR) AS detail
FROM prefixes
-- A thousandth of a turn is rounding.
WHERE failed_turns > failure_share * turns + 0.001
GROUP BY batch_id, task_type
ORDER BY subject, detail
