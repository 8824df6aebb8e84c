-- Which samples were over their hard cap when they were put into a batch?
-- The cap is that of the duration class in the settings of the pass; age = cap is kept.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'over_age' AS rule,
    sample_id AS subject,
    'in ' || batch_id || ' at age ' || COALESCE(CAST(age_versions AS VARCHAR), '?') || ' of '
        || COALESCE(CAST(max_age_versions AS VARCHAR), 'any') || ' versions, '
        || COALESCE(CAST(age_seconds AS VARCHAR), '?') || ' of '
        || COALESCE(CAST(max_wait_seconds AS VARCHAR), 'any') || ' s' AS detail
FROM batch_sample
WHERE age_versions > max_age_versions OR age_seconds > max_wait_seconds
ORDER BY subject, batch_id
