-- What did this pass come to?
-- dialect: duckdb
-- params: none
-- returns: blocker VARCHAR, is_partial BOOLEAN, unmet VARCHAR[],
--   enough_since TIMESTAMPTZ, flat_sides VARCHAR[], pending_turns BIGINT (turns),
--   turns BIGINT (turns), samples BIGINT, units BIGINT,
--   failed_turns BIGINT (turns), truncated_turns BIGINT (turns), discarded BIGINT (samples)
SELECT
    v.*,
    CAST(w.turns AS BIGINT) AS pending_turns,
    c.turns,
    c.samples,
    c.units,
    c.failed_turns,
    c.truncated_turns,
    d.discarded
FROM verdict AS v
CROSS JOIN (
    SELECT
        CAST(COALESCE(SUM(turns), 0) AS BIGINT) AS turns,
        COUNT(*) AS samples,
        COUNT(DISTINCT unit) AS units,
        CAST(COALESCE(SUM(turns) FILTER (WHERE is_failed), 0) AS BIGINT) AS failed_turns,
        CAST(COALESCE(SUM(turns) FILTER (WHERE is_truncated), 0) AS BIGINT) AS truncated_turns
    FROM chosen
) AS c
CROSS JOIN (SELECT COUNT(*) AS discarded FROM discards) AS d
CROSS JOIN (
    SELECT
        COALESCE((SELECT SUM(turns) FROM units WHERE verdict = 'ready'), 0)
        - COALESCE(
            (
                SELECT SUM(turns)
                FROM held
                WHERE reason IN ('failure_quota', 'truncation_line')
            ), 0
        ) AS turns
) AS w
