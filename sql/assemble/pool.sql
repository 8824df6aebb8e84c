-- Step 2. Which samples are open, how old are they, and over which lines?
-- Age = limit is kept, limit + 1 is not; a limit that is null does not apply. The reasons stand
-- in the configured order, the first is the primary one. A sample over a soft limit is kept
-- and counted.
-- dialect: duckdb
-- params: none
-- returns: position BIGINT, unit UBIGINT, task_type VARCHAR, stratum VARCHAR, state VARCHAR,
--   status VARCHAR, turns BIGINT (turns), reward DOUBLE, since TIMESTAMPTZ,
--   age_versions BIGINT (versions), age_seconds DOUBLE (s), max_age_versions BIGINT (versions),
--   max_wait_seconds DOUBLE (s), reasons VARCHAR[], is_soft BOOLEAN (over a soft limit),
--   is_ahead BOOLEAN (made by weights that are not published yet: its age is not known)
CREATE OR REPLACE TEMP VIEW pool AS
WITH aged AS (
    SELECT
        s.*,
        m.current_version - s.weight_version AS age_versions,
        CAST(epoch_us(m.now) - epoch_us(s.since) AS DOUBLE) / 1000000 AS age_seconds,
        COALESCE(c.max_age_versions, r.max_age_versions) AS max_age_versions,
        COALESCE(c.max_wait_seconds, r.max_wait_seconds) AS max_wait_seconds,
        COALESCE(c.soft_age_versions, r.soft_age_versions) AS soft_age_versions,
        COALESCE(c.soft_wait_seconds, r.soft_wait_seconds) AS soft_wait_seconds,
        r.reason_order
    FROM seen AS s
    CROSS JOIN moment AS m
    CROSS JOIN rules AS r
    LEFT JOIN duration_class AS c
        ON c.name = s.duration_class
    WHERE s.is_ours AND s.state IN ('pending', 'awaiting_reward')
)

SELECT
    position,
    unit,
    task_type,
    stratum,
    state,
    status,
    turns,
    reward,
    since,
    age_versions,
    age_seconds,
    max_age_versions,
    max_wait_seconds,
    CASE
        WHEN age_versions > max_age_versions OR age_seconds > max_wait_seconds
            THEN list_filter(
                reason_order,
                lambda reason: CASE reason
                    WHEN 'age_versions' THEN COALESCE(age_versions > max_age_versions, FALSE)
                    ELSE COALESCE(age_seconds > max_wait_seconds, FALSE)
                END
            )
    END AS reasons,
    COALESCE(age_versions > soft_age_versions, FALSE)
        OR COALESCE(age_seconds > soft_wait_seconds, FALSE) AS is_soft,
    COALESCE(age_versions < 0, FALSE) AS is_ahead
FROM aged
