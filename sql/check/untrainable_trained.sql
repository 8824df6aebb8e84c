-- Which samples are in a live batch or trained though they never may be?
-- A broken environment is not a failed agent, and what was not graded is not zero.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'untrainable_trained' AS rule,
    s.sample_id AS subject,
    w.state || ': ' || s.status
        || CASE WHEN d.reward IS NULL THEN ', without a reward' ELSE '' END AS detail
FROM samples AS s
INNER JOIN sample_state AS w
    ON w.position = s.position AND w.sample_id = s.sample_id
INNER JOIN sample_decision AS d
    ON d.position = s.position
WHERE
    w.state IN ('assigned', 'trained')
    AND (s.status NOT IN ('completed', 'truncated') OR (w.state = 'assigned' AND d.reward IS NULL))
ORDER BY subject
