-- Which alarms were raised, and which are still open?
-- returns: incident_id VARCHAR, kind VARCHAR, subject VARCHAR, opened_at TIMESTAMPTZ,
--   closed_at TIMESTAMPTZ (null while it is open), figures VARCHAR (JSON)
SELECT
    o.incident_id,
    o.kind,
    o.subject,
    o.at AS opened_at,
    c.at AS closed_at,
    o.figures
FROM incidents AS o
LEFT JOIN incidents AS c
    ON c.incident_id = o.incident_id AND c.event = 'closed'
WHERE o.event = 'opened'
