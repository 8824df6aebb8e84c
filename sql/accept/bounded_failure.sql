-- Is the failure share kept per task type, and has every no-gradient interruption an alarm?
-- An interruption belongs to an incident of its stream that was not closed before it.
-- dialect: duckdb
-- params: none
-- returns: figure VARCHAR, value DOUBLE, least DOUBLE, most DOUBLE
WITH shares AS (
    SELECT
        task_type,
        COALESCE(SUM(turns) FILTER (WHERE is_failed), 0) / NULLIF(SUM(turns), 0)
            AS failed_share,
        MIN(failure_share) AS failure_share
    FROM batch_sample
    GROUP BY batch_id, task_type
),

counted AS (
    SELECT
        COUNT(DISTINCT task_type) AS task_types,
        COUNT(DISTINCT task_type) FILTER (WHERE failure_share < 1) AS bounded_types,
        MAX(failed_share) AS most_failed
    FROM shares
),

interrupted AS (
    SELECT
        COUNT(*) FILTER (WHERE kind = 'pass' AND blocker = 'no_gradient') AS interruptions,
        COUNT(*) FILTER (WHERE kind = 'discarded' AND reason = 'flat') AS flat_discards
    FROM dispositions
),

incident AS (
    SELECT
        o.subject,
        MAX(c.at) AS closed_at
    FROM incidents AS o
    LEFT JOIN incidents AS c
        ON c.incident_id = o.incident_id AND c.event = 'closed'
    WHERE o.kind = 'no_gradient' AND o.event = 'opened'
    GROUP BY o.incident_id, o.subject
),

unalarmed AS (
    SELECT COUNT(*) AS interruptions
    FROM dispositions AS p
    WHERE
        p.kind = 'pass'
        AND p.blocker = 'no_gradient'
        AND NOT EXISTS (
            SELECT 1
            FROM incident AS n
            WHERE n.subject = p.stream AND COALESCE(n.closed_at >= p.decided_at, TRUE)
        )
),

batches AS (
    SELECT COUNT(*) AS trained
    FROM batch
    WHERE state = 'trained'
)

SELECT
    f.figure,
    CAST(f.value AS DOUBLE) AS value,
    CAST(f.least AS DOUBLE) AS least,
    CAST(f.most AS DOUBLE) AS most
FROM counted AS c
CROSS JOIN interrupted AS i
CROSS JOIN unalarmed AS u
CROSS JOIN (SELECT COUNT(*) AS incidents FROM incident) AS a
CROSS JOIN batches AS b
CROSS JOIN LATERAL (
    VALUES
        (1, 'trained_batches', b.trained, 1, NULL),
        (2, 'task_types', c.task_types, NULL, NULL),
        (3, 'task_types_with_a_share_below_1', c.bounded_types, NULL, NULL),
        (4, 'most_failed_share', c.most_failed, NULL, NULL),
        (5, 'no_gradient_interruptions', i.interruptions, NULL, NULL),
        (6, 'no_gradient_incidents', a.incidents, NULL, NULL),
        (7, 'interruptions_without_incident', u.interruptions, NULL, 0),
        (8, 'flat_discards', i.flat_discards, NULL, NULL)
) AS f (place, figure, value, least, most)
ORDER BY f.place
