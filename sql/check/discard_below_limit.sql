-- Which samples were discarded as too old though they were not over the limit?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'discard_below_limit' AS rule,
    d.sample_id AS subject,
    d.reason || ': age '
        || CASE d.reason
            WHEN 'age_versions' THEN COALESCE(CAST(d.age_versions AS VARCHAR), '?')
            ELSE COALESCE(CAST(d.age_seconds AS VARCHAR), '?')
        END
        || ', limit ' || CAST(d.limit AS VARCHAR) AS detail
FROM dispositions AS d
WHERE
    d.kind = 'discarded'
    AND (
        (d.reason = 'age_versions' AND NOT COALESCE(d.age_versions > d.limit, FALSE))
        OR (d.reason = 'wait_seconds' AND NOT COALESCE(d.age_seconds > d.limit, FALSE))
    )
    AND d.limit IS NOT NULL
ORDER BY subject
