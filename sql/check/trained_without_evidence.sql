-- Which samples are in a live batch or trained though their evidence is not whole?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'trained_without_evidence' AS rule,
    s.sample_id AS subject,
    w.state || ', missing:'
        || CASE WHEN s.attempt IS NULL THEN ' attempt' ELSE '' END
        || CASE WHEN s.turns IS NULL THEN ' turns' ELSE '' END
        || CASE WHEN s.weight_version IS NULL THEN ' weight_version' ELSE '' END
        || CASE WHEN s.image_digest IS NULL THEN ' image_digest' ELSE '' END
        || CASE WHEN s.seed IS NULL THEN ' seed' ELSE '' END
        || CASE WHEN s.toolchain_version IS NULL THEN ' toolchain_version' ELSE '' END
        || CASE WHEN s.dependency_digest IS NULL THEN ' dependency_digest' ELSE '' END
        || CASE WHEN s.is_traceable THEN '' ELSE ' (held back at ingest)' END AS detail
FROM samples AS s
INNER JOIN sample_state AS w
    ON w.position = s.position AND w.sample_id = s.sample_id
WHERE
    w.state IN ('assigned', 'trained')
    AND (
        NOT s.is_traceable
        OR s.attempt IS NULL
        OR s.turns IS NULL
        OR s.weight_version IS NULL
        OR s.image_digest IS NULL
        OR s.seed IS NULL
        OR s.toolchain_version IS NULL
        OR s.dependency_digest IS NULL
    )
ORDER BY subject
