-- How does the mix that was trained differ from the mix that was submitted, by stratum?
-- Submitted = turns of all trainable samples that arrived in the window, be they trained or not;
-- trained = turns of those that were acked in it. The window is half-open; a bound that is left
-- out does not apply. Shares are within a stream.
-- params: from_time TIMESTAMPTZ, to_time TIMESTAMPTZ
-- returns: stream VARCHAR, stratum VARCHAR, submitted_turns BIGINT (turns),
--   trained_turns BIGINT (turns), submitted_share DOUBLE, trained_share DOUBLE,
--   difference DOUBLE (trained - submitted share)
WITH turned AS (
    SELECT
        CASE WHEN s.origin = 'replay' THEN 'replay' ELSE 'train' END AS stream,
        s.task_type || '/' || COALESCE(s.duration_class, 'any') AS stratum,
        COALESCE(SUM(s.turns) FILTER (
            WHERE s.status IN ('completed', 'truncated')
            AND s.ingested_at >= COALESCE(CAST($from_time AS TIMESTAMPTZ), s.ingested_at)
            AND (CAST($to_time AS TIMESTAMPTZ) IS NULL OR s.ingested_at < $to_time)
        ), 0) AS submitted_turns,
        COALESCE(SUM(s.turns) FILTER (
            WHERE d.kind = 'trained'
            AND d.decided_at >= COALESCE(CAST($from_time AS TIMESTAMPTZ), d.decided_at)
            AND (CAST($to_time AS TIMESTAMPTZ) IS NULL OR d.decided_at < $to_time)
        ), 0) AS trained_turns
    FROM samples AS s
    LEFT JOIN sample_decision AS d
        ON d.position = s.position
    GROUP BY 1, 2
),

shared AS (
    SELECT
        *,
        submitted_turns / NULLIF(SUM(submitted_turns) OVER (PARTITION BY stream), 0)
            AS submitted_share,
        trained_turns / NULLIF(SUM(trained_turns) OVER (PARTITION BY stream), 0) AS trained_share
    FROM turned
    WHERE submitted_turns > 0 OR trained_turns > 0
)

SELECT
    stream,
    stratum,
    CAST(submitted_turns AS BIGINT) AS submitted_turns,
    CAST(trained_turns AS BIGINT) AS trained_turns,
    CAST(submitted_share AS DOUBLE) AS submitted_share,
    CAST(trained_share AS DOUBLE) AS trained_share,
    CAST(trained_share - submitted_share AS DOUBLE) AS difference
FROM shared
ORDER BY stream DESC, stratum
