-- Step 8, the order. In which order do units enter a batch? Weighted fair queueing over strata:
-- middle = (turns of the stratum so far, half of this unit included - credit) / share, oldest
-- first inside a stratum. By its end a large unit would always come late, and what strata of few
-- large units were short of at the cut would add up in the others. What a stratum must have comes
-- before all else. A needy unit never comes before the units of its task type that it stands
-- behind.
-- dialect: duckdb
-- params: none
-- returns: unit UBIGINT, first_position BIGINT, task_type VARCHAR, stratum VARCHAR,
--   since TIMESTAMPTZ, turns BIGINT (turns), failed_turns BIGINT (turns),
--   truncated_turns BIGINT (turns), members BIGINT, least_reward DOUBLE, most_reward DOUBLE,
--   is_flat BOOLEAN, is_needy BOOLEAN, ordinal BIGINT (0 = first),
--   turns_before BIGINT (turns of all before it)
CREATE OR REPLACE TEMP TABLE ordered AS
WITH admitted AS (
    SELECT
        q.*,
        a.share,
        a.credit,
        a.least_turns,
        SUM(q.turns) OVER (
            PARTITION BY q.stratum
            ORDER BY q.place, q.first_position
            ROWS UNBOUNDED PRECEDING
        ) AS stratum_turns
    FROM quota AS q
    INNER JOIN accounts AS a
        ON a.is_ours AND a.stratum = q.stratum
    WHERE NOT q.is_held AND q.unit NOT IN (SELECT unit FROM truncation)
),

timed AS (
    SELECT
        d.*,
        CASE
            -- Before all others, and still exact to a turn.
            WHEN d.stratum_turns - d.turns < d.least_turns THEN -1e15 + d.stratum_turns
            ELSE (d.stratum_turns - d.turns / 2.0 - d.credit) / greatest(d.share, 1e-9)
        END AS middle
    FROM admitted AS d
),

keyed AS (
    SELECT
        *,
        MAX(CASE WHEN NOT is_needy THEN middle END) OVER (
            PARTITION BY task_type
            ORDER BY place
            ROWS UNBOUNDED PRECEDING
        ) AS latest_before
    FROM timed
),

placed AS (
    SELECT
        *,
        CASE WHEN is_needy THEN greatest(middle, latest_before) ELSE middle END AS key
    FROM keyed
)

SELECT
    unit,
    first_position,
    task_type,
    stratum,
    since,
    turns,
    failed_turns,
    truncated_turns,
    members,
    least_reward,
    most_reward,
    is_flat,
    is_needy,
    row_number() OVER first - 1 AS ordinal,
    CAST(SUM(turns) OVER first - turns AS BIGINT) AS turns_before
FROM placed
WINDOW first AS (
    ORDER BY key, is_needy, since NULLS LAST, first_position
    ROWS UNBOUNDED PRECEDING
)
