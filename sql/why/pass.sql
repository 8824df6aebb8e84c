-- Which pass made a batch, under which settings, and on which versions of the tables?
-- params: batch_id VARCHAR
-- returns: sequence BIGINT, stream VARCHAR, decided_at TIMESTAMPTZ, is_partial BOOLEAN,
--   settings_fingerprint VARCHAR, settings VARCHAR (JSON; null if they are not stored),
--   table_versions VARCHAR (JSON), target_turns BIGINT (turns), turns BIGINT (turns),
--   samples INTEGER, units INTEGER, discarded INTEGER (samples), unmet VARCHAR[],
--   funnel VARCHAR (JSON)
SELECT
    p.sequence,
    p.stream,
    p.decided_at,
    COALESCE(p.is_partial, FALSE) AS is_partial,
    p.settings_fingerprint,
    c.document AS settings,
    p.table_versions,
    p.target_turns,
    p.turns,
    p.samples,
    p.units,
    p.discarded,
    p.unmet,
    p.funnel
FROM dispositions AS p
LEFT JOIN configs AS c
    ON c.fingerprint = p.settings_fingerprint AND c.kind = 'settings'
WHERE p.kind = 'pass' AND p.batch_id = $batch_id
