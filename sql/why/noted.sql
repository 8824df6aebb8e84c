-- What did a pass note about each of its samples?
-- params: sequence BIGINT
-- returns: position BIGINT, sample_id VARCHAR, kind VARCHAR, ordinal INTEGER, reason VARCHAR,
--   reasons VARCHAR[], reward DOUBLE, age_versions BIGINT (versions), age_seconds DOUBLE (s),
--   exceeded_limit DOUBLE
SELECT
    position,
    sample_id,
    kind,
    ordinal,
    reason,
    reasons,
    reward,
    age_versions,
    age_seconds,
    "limit" AS exceeded_limit
FROM dispositions
WHERE sequence = $sequence AND sample_id IS NOT NULL
ORDER BY kind, ordinal NULLS LAST, position
