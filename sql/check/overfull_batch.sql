-- Which batches went on after their turns were complete?
-- A batch ends with the first unit at which its turns reach T: without its last unit it is short,
-- or nothing in it carries a gradient.
-- dialect: duckdb
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
WITH units AS (
    SELECT
        batch_id,
        unit,
        MIN(ordinal) AS ordinal,
        MIN(target_turns) AS target_turns,
        SUM(turns) AS turns,
        MIN(reward) AS least_reward,
        MAX(reward) AS most_reward,
        bool_or(has_groups) AS has_groups
    FROM batch_sample
    GROUP BY batch_id, unit
),

placed AS (
    SELECT
        *,
        ordinal = MAX(ordinal) OVER (PARTITION BY batch_id) AS is_last
    FROM units
)

SELECT
    'overfull_batch' AS rule,
    batch_id AS subject,
    CAST(SUM(turns) AS VARCHAR) || ' turns, the last unit has '
        || CAST(SUM(turns) FILTER (WHERE is_last) AS VARCHAR) || ', and T is '
        || CAST(MIN(target_turns) AS VARCHAR) AS detail
FROM placed
GROUP BY batch_id
HAVING
    SUM(turns) FILTER (WHERE NOT is_last) >= MIN(target_turns)
    AND CASE
        WHEN bool_or(has_groups)
            THEN MAX(most_reward - least_reward) FILTER (WHERE NOT is_last) > 1e-9
        ELSE
            MAX(most_reward) FILTER (WHERE NOT is_last)
                - MIN(least_reward) FILTER (WHERE NOT is_last) > 1e-9
    END
ORDER BY subject
