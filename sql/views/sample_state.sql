-- What became of each sample?
-- state: trained, assigned, discarded (decided); never_trainable, evidence_missing,
-- awaiting_reward (held back); pending (may enter a batch).
-- returns: position BIGINT, sample_id VARCHAR, tenant VARCHAR, task_type VARCHAR,
--   duration_class VARCHAR, group_id VARCHAR, attempt INTEGER, status VARCHAR, origin VARCHAR,
--   turns INTEGER (turns), weight_version BIGINT, reward DOUBLE, started_at TIMESTAMPTZ,
--   since TIMESTAMPTZ (waits from then on),
--   state VARCHAR, reason VARCHAR, batch_id VARCHAR, decided_at TIMESTAMPTZ
SELECT
    s.position,
    s.sample_id,
    s.tenant,
    s.task_type,
    s.duration_class,
    s.group_id,
    s.attempt,
    s.status,
    s.origin,
    s.turns,
    s.weight_version,
    COALESCE(g.reward, s.reward) AS reward,
    s.started_at,
    COALESCE(s.finished_at, s.ingested_at) AS since,
    CASE
        WHEN d.kind IN ('trained', 'assigned', 'discarded') THEN d.kind
        WHEN s.status NOT IN ('completed', 'truncated') THEN 'never_trainable'
        WHEN NOT s.is_traceable THEN 'evidence_missing'
        WHEN COALESCE(g.reward, s.reward) IS NULL THEN 'awaiting_reward'
        ELSE 'pending'
    END AS state,
    CASE
        WHEN d.kind = 'discarded' THEN d.reason
        WHEN s.status NOT IN ('completed', 'truncated') THEN s.status
    END AS reason,
    CASE WHEN d.kind IN ('trained', 'assigned') THEN d.batch_id END AS batch_id,
    d.decided_at
FROM samples AS s
LEFT JOIN sample_decision AS d
    ON d.position = s.position
LEFT JOIN grading AS g
    ON g.position = s.position
