-- Which batch waits for a learner: one whose lease ran out, or, if wanted, one nobody holds?
-- dialect: duckdb
-- params: stream VARCHAR, with_unheld BOOLEAN
-- returns: batch_id VARCHAR
SELECT b.batch_id
FROM batch AS b
CROSS JOIN moment AS m
WHERE
    b.state = 'assigned'
    AND b.stream = $stream
    AND COALESCE(b.lease_until <= m.now, $with_unheld)
ORDER BY b.sequence
LIMIT 1
