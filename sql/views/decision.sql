-- What did each assembler pass decide, and what did it see?
-- blocker is null where a batch was made. blockers are all reasons for which turns were kept out of
-- it, with how many, most first.
-- returns: sequence BIGINT, decided_at TIMESTAMPTZ, stream VARCHAR, batch_id VARCHAR,
--   target_turns BIGINT (turns), turns BIGINT (turns), samples INTEGER, units INTEGER,
--   weight_version BIGINT, settings_fingerprint VARCHAR, blocker VARCHAR,
--   funnel VARCHAR (JSON), blockers VARCHAR (JSON), table_versions VARCHAR (JSON)
SELECT
    sequence,
    decided_at,
    stream,
    batch_id,
    target_turns,
    turns,
    samples,
    units,
    weight_version,
    settings_fingerprint,
    blocker,
    funnel,
    blockers,
    table_versions
FROM dispositions
WHERE kind = 'pass'
