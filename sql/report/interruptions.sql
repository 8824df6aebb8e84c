-- How often did nothing carry a gradient, and was it too easy or too hard?
-- An interruption is a batch that was not emitted because all in it was flat; side is both where
-- it held flat units of either kind. Flat groups are those that were discarded one by one.
-- dialect: duckdb
-- params: none
-- returns: stream VARCHAR, side VARCHAR (too_easy, too_hard, both), interruptions BIGINT,
--   flat_groups BIGINT, flat_samples BIGINT, flat_turns BIGINT (turns), latest_at TIMESTAMPTZ
WITH passes AS (
    SELECT
        sequence,
        stream,
        blocker,
        reasons,
        decided_at
    FROM dispositions
    WHERE kind = 'pass'
),

happened AS (
    SELECT
        stream,
        CASE WHEN len(reasons) = 1 THEN reasons[1] ELSE 'both' END AS side,
        decided_at,
        sequence AS interruption,
        NULL AS flat_group,
        NULL AS turns
    FROM passes
    WHERE blocker = 'no_gradient'
    UNION ALL
    SELECT
        p.stream,
        CASE WHEN list_contains(d.reasons, 'too_easy') THEN 'too_easy' ELSE 'too_hard' END,
        d.decided_at,
        NULL,
        COALESCE(s.group_id, s.sample_id),
        COALESCE(s.turns, 0)
    FROM dispositions AS d
    INNER JOIN passes AS p
        ON p.sequence = d.sequence
    INNER JOIN samples AS s
        ON s.position = d.position
    WHERE d.kind = 'discarded' AND list_contains(d.reasons, 'flat')
)

SELECT
    stream,
    side,
    COUNT(interruption) AS interruptions,
    COUNT(DISTINCT flat_group) AS flat_groups,
    COUNT(flat_group) AS flat_samples,
    CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS flat_turns,
    MAX(decided_at) AS latest_at
FROM happened
GROUP BY stream, side
ORDER BY stream, side
