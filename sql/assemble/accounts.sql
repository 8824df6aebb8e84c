-- Step 7, the shares. Which share of the turns is each stratum's, and what is it owed?
-- As submitted: its part of all trainable turns that were ever dispatched, be they trained,
-- waiting, discarded or still running. What still runs is estimated: of tasks dispatched evenly
-- over t seconds that run for d each, the part (t - d) / t has arrived, so what arrived is
-- divided by that. Counted as they arrive, long tasks would stay short of their share while the
-- book is young. The estimate is at most four times what arrived: of the first ones little is
-- known. As configured: the share set for the stratum, or else its task type's share split
-- as submitted among the strata of the type that have none of their own. What arrived below
-- $counted_to is carried from decision to decision; above it, rows may still come, so those are
-- counted anew each time. The other stream's account is carried on too: what is decided goes out
-- of sight with any pass.
-- dialect: duckdb
-- params: counted_to BIGINT, horizon BIGINT
-- returns: is_ours BOOLEAN (of this pass's stream), stratum VARCHAR, task_type VARCHAR,
--   share DOUBLE, credit DOUBLE (turns owed), settled_turns BIGINT (turns below $horizon),
--   settled_turn_seconds BIGINT (turns below it times the seconds of their run),
--   first_start BIGINT (s since 1970), arrived_turns BIGINT (turns),
--   least_turns DOUBLE (turns that it must have in a batch)
CREATE OR REPLACE TEMP TABLE accounts AS
WITH runs AS (
    SELECT
        is_ours,
        stratum,
        task_type,
        position,
        turns,
        -- Whole seconds, so that the order of the rows cannot change a sum.
        epoch_us(started_at) // 1000000 AS start,
        COALESCE(greatest((epoch_us(since) - epoch_us(started_at)) // 1000000, 0), 0)
            AS run_seconds
    FROM seen
    WHERE
        position >= $counted_to
        AND state <> 'never_trainable'
),

arrived AS (
    SELECT
        is_ours,
        stratum,
        -- One account a stratum: a/b of class c and a of class b/c have one name, and share it.
        MIN(task_type) AS task_type,
        COALESCE(SUM(turns) FILTER (WHERE position < $horizon), 0) AS settled_turns,
        COALESCE(SUM(turns * run_seconds) FILTER (WHERE position < $horizon), 0)
            AS settled_turn_seconds,
        SUM(turns) AS arrived_turns,
        SUM(turns * run_seconds) AS arrived_turn_seconds,
        MIN(start) AS first_start
    FROM runs
    GROUP BY is_ours, stratum
),

summed AS (
    SELECT
        COALESCE(b.is_ours, a.is_ours) AS is_ours,
        COALESCE(b.stratum, a.stratum) AS stratum,
        COALESCE(b.task_type, a.task_type) AS task_type,
        COALESCE(b.credit, 0) AS credit,
        CAST(COALESCE(b.settled_turns, 0) + COALESCE(a.settled_turns, 0) AS BIGINT)
            AS settled_turns,
        CAST(COALESCE(b.settled_turns, 0) + COALESCE(a.arrived_turns, 0) AS BIGINT)
            AS arrived_turns,
        CAST(
            COALESCE(b.settled_turn_seconds, 0) + COALESCE(a.settled_turn_seconds, 0) AS BIGINT
        ) AS settled_turn_seconds,
        COALESCE(b.settled_turn_seconds, 0) + COALESCE(a.arrived_turn_seconds, 0)
            AS arrived_turn_seconds,
        -- Where either is null, the other.
        least(b.first_start, a.first_start) AS first_start
    FROM balance AS b
    FULL JOIN arrived AS a
        ON a.is_ours = b.is_ours AND a.stratum = b.stratum
),

estimated AS (
    SELECT
        s.*,
        s.arrived_turns / greatest(
            1 - COALESCE(
                s.arrived_turn_seconds / NULLIF(s.arrived_turns, 0)
                    / NULLIF(greatest(epoch_us(m.now) // 1000000 - s.first_start, 0), 0),
                0
            ),
            0.25
        ) AS submitted_turns
    FROM summed AS s
    CROSS JOIN moment AS m
),

weighted AS (
    SELECT
        s.*,
        CASE
            WHEN r.share_mode = 'submitted' THEN s.submitted_turns
            WHEN own.share IS NOT NULL THEN own.share
            ELSE COALESCE(of_type.share, 0) * s.submitted_turns / NULLIF(
                SUM(s.submitted_turns) OVER (
                    PARTITION BY s.is_ours, s.task_type, own.share IS NULL
                ), 0
            )
        END AS weight,
        COALESCE(least.share, 0) * r.turns AS least_turns
    FROM estimated AS s
    CROSS JOIN rules AS r
    LEFT JOIN configured_share AS own
        ON own.name = s.stratum
    LEFT JOIN configured_share AS of_type
        ON of_type.name = s.task_type
    LEFT JOIN minimum_share AS least
        ON least.name = s.stratum
)

SELECT
    is_ours,
    stratum,
    task_type,
    COALESCE(weight / NULLIF(SUM(weight) OVER (PARTITION BY is_ours), 0), 0) AS share,
    credit,
    settled_turns,
    settled_turn_seconds,
    first_start,
    arrived_turns,
    least_turns
FROM weighted
