-- Which alarms of a stream, or of a task type, are open?
-- params: stream VARCHAR
-- returns: kind VARCHAR, subject VARCHAR, opened_at TIMESTAMPTZ
SELECT
    kind,
    subject,
    opened_at
FROM incident
WHERE closed_at IS NULL AND (subject = $stream OR kind IN ('type_starved', 'all_refused'))
ORDER BY opened_at, kind, subject
