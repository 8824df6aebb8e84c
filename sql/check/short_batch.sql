-- Which batches hold less than T turns and are not flagged as partial?
-- The turns are those of the samples, whatever the header says.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
SELECT
    'short_batch' AS rule,
    b.batch_id AS subject,
    CAST(COALESCE(h.turns, 0) AS VARCHAR) || ' of '
        || COALESCE(CAST(b.target_turns AS VARCHAR), '?') || ' turns, not flagged partial' AS detail
FROM batch AS b
LEFT JOIN (SELECT batch_id, SUM(turns) AS turns FROM batch_sample GROUP BY batch_id) AS h
    ON h.batch_id = b.batch_id
WHERE
    NOT COALESCE(b.is_partial, FALSE)
    AND (b.target_turns IS NULL OR COALESCE(h.turns, 0) < b.target_turns)
ORDER BY subject
