-- Of which tenant's task type are samples in no state, or in more than one?
-- Each state is counted on its own from the journal, so that samples = trained + discarded +
-- assigned + open is a statement about the book and not about one expression.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (tenant and task type), detail VARCHAR
WITH decided AS (
    SELECT
        d.position,
        MAX(CASE WHEN d.kind = 'trained' THEN 1 ELSE 0 END) AS trained,
        MAX(CASE WHEN d.kind = 'discarded' THEN 1 ELSE 0 END) AS discarded,
        MAX(CASE WHEN d.kind = 'assigned' AND b.state = 'assigned' THEN 1 ELSE 0 END) AS assigned
    FROM dispositions AS d
    LEFT JOIN batch AS b
        ON b.batch_id = d.batch_id
    WHERE d.sample_id IS NOT NULL
    GROUP BY d.position
),

placed AS (
    SELECT
        s.tenant,
        s.task_type,
        COALESCE(d.trained, 0) AS trained,
        COALESCE(d.discarded, 0) AS discarded,
        COALESCE(d.assigned, 0) AS assigned,
        CASE WHEN l.kind IS NULL OR l.kind = 'released' THEN 1 ELSE 0 END AS open
    FROM samples AS s
    LEFT JOIN decided AS d
        ON d.position = s.position
    LEFT JOIN sample_decision AS l
        ON l.position = s.position
)

SELECT
    'conservation' AS rule,
    tenant || ' ' || task_type AS subject,
    CAST(COUNT(*) AS VARCHAR) || ' samples; trained ' || CAST(SUM(trained) AS VARCHAR)
        || ', discarded ' || CAST(SUM(discarded) AS VARCHAR)
        || ', assigned ' || CAST(SUM(assigned) AS VARCHAR)
        || ', open ' || CAST(SUM(open) AS VARCHAR) AS detail
FROM placed
GROUP BY tenant, task_type
HAVING
    MIN(trained + discarded + assigned + open) <> 1
    OR MAX(trained + discarded + assigned + open) <> 1
ORDER BY subject
