-- Which samples stand in two live batches, or twice in one?
-- A batch is live until it is released.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'two_live_batches' AS rule,
    d.sample_id AS subject,
    CAST(COUNT(*) AS VARCHAR) || ' times, first in ' || MIN(d.batch_id) || ', last in '
        || MAX(d.batch_id) AS detail
FROM dispositions AS d
WHERE
    d.kind = 'assigned'
    AND d.batch_id NOT IN (SELECT batch_id FROM batch WHERE state = 'released')
GROUP BY d.sample_id
HAVING COUNT(*) > 1
ORDER BY subject
