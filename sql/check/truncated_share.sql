-- Which batches hold more truncated turns than the line that held allows?
-- The line is a share of T. A line of 1 is none: of truncated turns alone, too, a batch takes the
-- unit that completes it whole.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (batch), detail VARCHAR
SELECT
    'truncated_share' AS rule,
    batch_id AS subject,
    CAST(SUM(turns) AS VARCHAR) || ' truncated turns, allowed are '
        || CAST(MIN(truncated_share) * MIN(target_turns) AS VARCHAR) AS detail
FROM batch_sample
WHERE is_truncated
GROUP BY batch_id
-- A thousandth of a turn is rounding.
HAVING
    MIN(truncated_share) < 1
    AND SUM(turns) > MIN(truncated_share) * MIN(target_turns) + 0.001
ORDER BY subject
