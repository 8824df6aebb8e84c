-- What kept a batch waiting: which passes of its stream were blocked since the batch before it?
-- params: sequence BIGINT, stream VARCHAR
-- returns: sequence BIGINT, decided_at TIMESTAMPTZ, blocker VARCHAR, target_turns BIGINT (turns),
--   unmet VARCHAR[], funnel VARCHAR (JSON)
SELECT
    p.sequence,
    p.decided_at,
    p.blocker,
    p.target_turns,
    p.unmet,
    p.funnel
FROM dispositions AS p
WHERE
    p.kind = 'pass'
    AND p.stream = $stream
    AND p.blocker IS NOT NULL
    AND p.sequence < $sequence
    AND p.sequence > COALESCE(
        (
            SELECT MAX(b.sequence)
            FROM dispositions AS b
            WHERE
                b.kind = 'pass'
                AND b.stream = $stream
                AND b.batch_id IS NOT NULL
                AND b.sequence < $sequence
        ), -1
    )
ORDER BY p.sequence
