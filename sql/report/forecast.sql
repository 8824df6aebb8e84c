-- Which waiting samples will go over the discard line before the next batch?
-- Waiting are those that are pending or await their reward: both age. By versions they go if one
-- more weight version is published, by time if they wait for the horizon longer; what is over a
-- line already goes too. The horizon is $horizon_seconds, or else the median interval between the
-- last ten batches of the stream, 0 where there were no two. The lines are those of the newest
-- pass: where none was made, or its settings are not stored, what goes is not known. Where a
-- stale member takes its group with it, the others are not counted.
-- dialect: duckdb
-- params: horizon_seconds DOUBLE
-- returns: stream VARCHAR, task_type VARCHAR, duration_class VARCHAR, waiting_samples BIGINT,
--   waiting_turns BIGINT (turns), horizon_seconds DOUBLE (s), by_version_samples BIGINT,
--   by_version_turns BIGINT (turns), by_time_samples BIGINT, by_time_turns BIGINT (turns),
--   lost_samples BIGINT (either), lost_turns BIGINT (turns), lost_share DOUBLE (of waiting turns)
WITH newest AS (
    SELECT settings_fingerprint
    FROM dispositions
    WHERE kind = 'pass'
    ORDER BY sequence DESC
    LIMIT 1
),

lines AS (
    SELECT
        json_extract(c.document, '$.discard') AS discard,
        CAST(json_extract(c.document, '$.duration_class') AS MAP(VARCHAR, JSON)) AS classes
    FROM newest AS n
    INNER JOIN configs AS c
        ON c.fingerprint = n.settings_fingerprint AND c.kind = 'settings'
),

batches AS (
    SELECT
        stream,
        sequence,
        decided_at,
        row_number() OVER (PARTITION BY stream ORDER BY sequence DESC) AS nth
    FROM dispositions
    WHERE kind = 'pass' AND batch_id IS NOT NULL
),

intervals AS (
    SELECT
        stream,
        epoch_us(decided_at)
            - epoch_us(lag(decided_at) OVER (PARTITION BY stream ORDER BY sequence)) AS micros
    FROM batches
    WHERE nth <= 10
),

horizons AS (
    SELECT
        stream,
        COALESCE(median(micros), 0) / 1000000 AS seconds
    FROM intervals
    GROUP BY stream
),

aged AS (
    SELECT
        CASE WHEN s.origin = 'replay' THEN 'replay' ELSE 'train' END AS stream,
        s.task_type,
        s.duration_class,
        s.turns,
        m.current_version + 1 - s.weight_version AS next_age_versions,
        CAST(epoch_us(m.now) - epoch_us(s.since) AS DOUBLE) / 1000000 AS age_seconds,
        l.discard IS NOT NULL AS has_lines,
        CAST(
            COALESCE(
                l.classes[s.duration_class] ->> 'max_age_versions', l.discard ->> 'max_age_versions'
            ) AS BIGINT
        ) AS max_age_versions,
        CAST(
            COALESCE(
                l.classes[s.duration_class] ->> 'max_wait_seconds', l.discard ->> 'max_wait_seconds'
            ) AS DOUBLE
        ) AS max_wait_seconds
    FROM sample_state AS s
    CROSS JOIN moment AS m
    LEFT JOIN lines AS l
        ON TRUE
    WHERE s.state IN ('pending', 'awaiting_reward')
),

ahead AS (
    SELECT
        a.*,
        COALESCE(CAST($horizon_seconds AS DOUBLE), h.seconds, 0) AS horizon_seconds
    FROM aged AS a
    LEFT JOIN horizons AS h
        ON h.stream = a.stream
),

judged AS (
    SELECT
        *,
        CASE WHEN has_lines THEN COALESCE(next_age_versions > max_age_versions, FALSE) END
            AS is_by_version,
        CASE WHEN has_lines THEN COALESCE(age_seconds + horizon_seconds > max_wait_seconds, FALSE)
            END AS is_by_time
    FROM ahead
),

summed AS (
    SELECT
        stream,
        task_type,
        duration_class,
        COUNT(*) AS waiting_samples,
        CAST(SUM(turns) AS BIGINT) AS waiting_turns,
        ANY_VALUE(horizon_seconds) AS horizon_seconds,
        SUM(CAST(is_by_version AS BIGINT)) AS by_version_samples,
        SUM(CASE WHEN is_by_version THEN turns WHEN NOT is_by_version THEN 0 END)
            AS by_version_turns,
        SUM(CAST(is_by_time AS BIGINT)) AS by_time_samples,
        SUM(CASE WHEN is_by_time THEN turns WHEN NOT is_by_time THEN 0 END) AS by_time_turns,
        SUM(CAST(is_by_version OR is_by_time AS BIGINT)) AS lost_samples,
        SUM(
            CASE
                WHEN is_by_version OR is_by_time THEN turns
                WHEN NOT (is_by_version OR is_by_time) THEN 0
            END
        ) AS lost_turns
    FROM judged
    GROUP BY stream, task_type, duration_class
)

SELECT
    stream,
    task_type,
    duration_class,
    waiting_samples,
    waiting_turns,
    horizon_seconds,
    CAST(by_version_samples AS BIGINT) AS by_version_samples,
    CAST(by_version_turns AS BIGINT) AS by_version_turns,
    CAST(by_time_samples AS BIGINT) AS by_time_samples,
    CAST(by_time_turns AS BIGINT) AS by_time_turns,
    CAST(lost_samples AS BIGINT) AS lost_samples,
    CAST(lost_turns AS BIGINT) AS lost_turns,
    CAST(lost_turns AS DOUBLE) / NULLIF(waiting_turns, 0) AS lost_share
FROM summed
ORDER BY stream DESC, task_type, duration_class NULLS LAST
