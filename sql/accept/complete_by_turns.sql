-- Is every batch complete by turns, and is its truncated share inside the line and queryable?
-- dialect: duckdb
-- params: none
-- returns: figure VARCHAR, value DOUBLE, least DOUBLE, most DOUBLE
WITH batches AS (
    SELECT
        batch_id,
        MIN(batch_state) AS state,
        bool_or(is_partial) AS is_partial,
        SUM(turns) AS turns,
        MIN(target_turns) AS target_turns,
        COALESCE(SUM(turns) FILTER (WHERE is_truncated), 0) / MIN(target_turns)
            AS truncated_share
    FROM batch_sample
    GROUP BY batch_id
),

counted AS (
    SELECT
        COUNT(*) FILTER (WHERE state = 'trained') AS trained,
        COUNT(*) AS batches,
        COUNT(*) FILTER (WHERE is_partial) AS partial,
        MIN(turns / target_turns) FILTER (WHERE NOT is_partial) AS fewest,
        MAX(truncated_share) AS most_truncated
    FROM batches
)

SELECT
    f.figure,
    CAST(f.value AS DOUBLE) AS value,
    CAST(f.least AS DOUBLE) AS least,
    CAST(f.most AS DOUBLE) AS most
FROM counted AS c
CROSS JOIN LATERAL (
    VALUES
        (1, 'trained_batches', c.trained, 1, NULL),
        (2, 'batches', c.batches, NULL, NULL),
        (3, 'partial_batches', c.partial, NULL, NULL),
        (4, 'fewest_turns_of_t', c.fewest, NULL, NULL),
        (5, 'most_truncated_share', c.most_truncated, NULL, NULL)
) AS f (place, figure, value, least, most)
ORDER BY f.place
