-- Can any sample be traced to its environment image, weight version and attempt number?
-- What is held back for missing evidence is told; a fact is missing only if its gap is named.
-- Values below least are too little to judge by; values above most are a failure.
-- dialect: duckdb
-- params: none
-- returns: figure VARCHAR, value DOUBLE, least DOUBLE, most DOUBLE
WITH counted AS (
    SELECT
        COUNT(*) AS samples,
        COUNT(*) FILTER (WHERE w.state = 'trained') AS trained,
        COUNT(*) FILTER (WHERE w.state = 'evidence_missing') AS held_back,
        COUNT(*) FILTER (
            WHERE s.image_digest IS NOT NULL
            AND s.weight_version IS NOT NULL
            AND s.attempt IS NOT NULL
        ) AS traced,
        COUNT(*) FILTER (
            WHERE (s.image_digest IS NULL AND NOT list_contains(s.gaps, 'image_digest'))
            OR (s.weight_version IS NULL AND NOT list_contains(s.gaps, 'weight_version'))
            OR (s.attempt IS NULL AND NOT list_contains(s.gaps, 'attempt'))
        ) AS unnamed
    FROM samples AS s
    INNER JOIN sample_state AS w
        ON w.position = s.position AND w.sample_id = s.sample_id
)

SELECT
    f.figure,
    CAST(f.value AS DOUBLE) AS value,
    CAST(f.least AS DOUBLE) AS least,
    CAST(f.most AS DOUBLE) AS most
FROM counted AS c
CROSS JOIN LATERAL (
    VALUES
        (1, 'trained_samples', c.trained, 1, NULL),
        (2, 'samples', c.samples, NULL, NULL),
        (3, 'traced_samples', c.traced, NULL, NULL),
        (4, 'held_back_for_evidence', c.held_back, NULL, NULL),
        (5, 'missing_without_a_gap', c.unnamed, NULL, 0)
) AS f (place, figure, value, least, most)
ORDER BY f.place
