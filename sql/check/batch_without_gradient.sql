-- Which batches were emitted though nothing in them carries a gradient?
-- Rewards are equal if max - min <= 1e-9: with groups in each of them, else in the whole batch.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
WITH spreads AS (
    SELECT
        batch_id,
        MAX(reward) - MIN(reward) AS spread,
        COUNT(*) AS samples
    FROM batch_sample
    GROUP BY batch_id, CASE WHEN has_groups THEN unit END
)

SELECT
    'batch_without_gradient' AS rule,
    batch_id AS subject,
    CAST(SUM(samples) AS VARCHAR) || ' samples, the widest rewards differ by '
        || CAST(COALESCE(MAX(spread), 0) AS VARCHAR) AS detail
FROM spreads
GROUP BY batch_id
HAVING COALESCE(MAX(spread), 0) <= 1e-9
ORDER BY subject
