-- Which samples were put into each batch, and which limits held when it was cut?
-- The limits stand in the settings document that the pass names by its fingerprint; where that
-- is not stored they are null, and has_settings is false. unit is the group where groups are on,
-- else the sample. The age is worked out again from the facts.
-- dialect: duckdb
-- returns: batch_id VARCHAR, sequence BIGINT, stream VARCHAR, batch_state VARCHAR,
--   target_turns BIGINT (turns), is_partial BOOLEAN, position BIGINT, sample_id VARCHAR,
--   ordinal INTEGER, unit VARCHAR, task_type VARCHAR, duration_class VARCHAR, origin VARCHAR,
--   turns INTEGER (turns), reward DOUBLE, is_failed BOOLEAN, is_truncated BOOLEAN,
--   age_versions BIGINT (versions), age_seconds DOUBLE (s), has_settings BOOLEAN,
--   has_groups BOOLEAN, truncated_share DOUBLE, failure_share DOUBLE,
--   max_age_versions BIGINT (versions), max_wait_seconds DOUBLE (s)
WITH limits AS (
    SELECT
        fingerprint,
        json_extract(document, '$.discard') AS discard,
        CAST(json_extract(document, '$.duration_class') AS MAP(VARCHAR, JSON)) AS classes,
        json_extract(document, '$.default_task_type') AS any_type,
        CAST(json_extract(document, '$.task_type') AS MAP(VARCHAR, JSON)) AS types,
        CAST(document ->> '$.batch.truncated_share' AS DOUBLE) AS truncated_share,
        (document ->> '$.groups.size') IS NOT NULL AS has_groups
    FROM configs
    WHERE kind = 'settings'
),

passes AS (
    SELECT
        p.batch_id,
        p.sequence,
        p.stream,
        b.state AS batch_state,
        p.target_turns,
        COALESCE(p.is_partial, FALSE) AS is_partial,
        l.*
    FROM dispositions AS p
    INNER JOIN batch AS b
        ON b.batch_id = p.batch_id AND b.sequence = p.sequence
    LEFT JOIN limits AS l
        ON l.fingerprint = p.settings_fingerprint
    WHERE p.kind = 'pass' AND p.batch_id IS NOT NULL
)

SELECT
    p.batch_id,
    p.sequence,
    p.stream,
    p.batch_state,
    p.target_turns,
    p.is_partial,
    d.position,
    d.sample_id,
    d.ordinal,
    CASE WHEN p.has_groups THEN COALESCE(s.group_id, d.sample_id) ELSE d.sample_id END AS unit,
    s.task_type,
    s.duration_class,
    s.origin,
    s.turns,
    d.reward,
    d.reward < CAST(
        COALESCE(p.types[s.task_type] ->> 'success_at', p.any_type ->> 'success_at') AS DOUBLE
    ) AS is_failed,
    s.status = 'truncated' AS is_truncated,
    d.weight_version - s.weight_version AS age_versions,
    CAST(epoch_us(d.decided_at) - epoch_us(COALESCE(s.finished_at, s.ingested_at)) AS DOUBLE)
        / 1000000 AS age_seconds,
    p.fingerprint IS NOT NULL AS has_settings,
    COALESCE(p.has_groups, FALSE) AS has_groups,
    p.truncated_share,
    CAST(
        COALESCE(p.types[s.task_type] ->> 'failure_share', p.any_type ->> 'failure_share')
        AS DOUBLE
    ) AS failure_share,
    CAST(
        COALESCE(
            p.classes[s.duration_class] ->> 'max_age_versions', p.discard ->> 'max_age_versions'
        ) AS BIGINT
    ) AS max_age_versions,
    CAST(
        COALESCE(
            p.classes[s.duration_class] ->> 'max_wait_seconds', p.discard ->> 'max_wait_seconds'
        ) AS DOUBLE
    ) AS max_wait_seconds
FROM passes AS p
INNER JOIN dispositions AS d
    ON d.batch_id = p.batch_id AND d.sequence = p.sequence AND d.kind = 'assigned'
LEFT JOIN samples AS s
    ON s.position = d.position AND s.sample_id = d.sample_id
