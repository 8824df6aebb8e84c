-- What is each stratum owed once this pass is committed?
-- Credit grows by the stratum's share of the batch and falls by what it got, and never passes
-- one batch either way. What the other stream's strata are owed stays as it is.
-- dialect: duckdb
-- params: none
-- returns: is_ours BOOLEAN (of this pass's stream), stratum VARCHAR, task_type VARCHAR,
--   settled_turns BIGINT (turns), settled_turn_seconds BIGINT (turns times s),
--   first_start BIGINT (s since 1970), credit DOUBLE (turns)
WITH got AS (
    SELECT
        stratum,
        SUM(turns) AS turns
    FROM chosen
    GROUP BY stratum
),

batch_total AS (
    SELECT COALESCE(SUM(turns), 0) AS turns
    FROM chosen
)

SELECT
    a.is_ours,
    a.stratum,
    a.task_type,
    a.settled_turns,
    a.settled_turn_seconds,
    a.first_start,
    CASE
        WHEN a.is_ours
            THEN least(
                greatest(a.credit + a.share * b.turns - COALESCE(g.turns, 0), -r.turns), r.turns
            )
        ELSE a.credit
    END AS credit
FROM accounts AS a
CROSS JOIN batch_total AS b
CROSS JOIN rules AS r
LEFT JOIN got AS g
    ON g.stratum = a.stratum
ORDER BY a.is_ours, a.stratum
