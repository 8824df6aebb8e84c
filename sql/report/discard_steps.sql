-- How many samples did each decision discard, and which rate does that come to so far?
-- By task type, so that a type that loses everything is not hidden in the whole. The rates are
-- shares of what was decided: discarded / (discarded + assigned). A sample that was released
-- and assigned again was decided twice.
-- params: task_type VARCHAR
-- returns: sequence BIGINT, decided_at TIMESTAMPTZ, task_type VARCHAR, discarded BIGINT (samples),
--   assigned BIGINT (samples), rate DOUBLE, discarded_so_far BIGINT (samples),
--   assigned_so_far BIGINT (samples), rate_so_far DOUBLE
WITH steps AS (
    SELECT
        d.sequence,
        d.decided_at,
        s.task_type,
        COUNT(*) FILTER (WHERE d.kind = 'discarded') AS discarded,
        COUNT(*) FILTER (WHERE d.kind = 'assigned') AS assigned
    FROM dispositions AS d
    INNER JOIN samples AS s
        ON s.position = d.position
    WHERE
        d.kind IN ('discarded', 'assigned')
        AND (CAST($task_type AS VARCHAR) IS NULL OR s.task_type = $task_type)
    GROUP BY d.sequence, d.decided_at, s.task_type
),

summed AS (
    SELECT
        *,
        SUM(discarded) OVER so_far AS discarded_so_far,
        SUM(assigned) OVER so_far AS assigned_so_far
    FROM steps
    WINDOW so_far AS (
        PARTITION BY task_type
        ORDER BY sequence
        ROWS UNBOUNDED PRECEDING
    )
)

SELECT
    sequence,
    decided_at,
    task_type,
    discarded,
    assigned,
    CAST(discarded AS DOUBLE) / (discarded + assigned) AS rate,
    CAST(discarded_so_far AS BIGINT) AS discarded_so_far,
    CAST(assigned_so_far AS BIGINT) AS assigned_so_far,
    CAST(discarded_so_far AS DOUBLE) / (discarded_so_far + assigned_so_far) AS rate_so_far
FROM summed
ORDER BY sequence, task_type
