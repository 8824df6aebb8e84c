-- Which incidents were there?
-- params: none
-- returns: incident_id VARCHAR, kind VARCHAR, subject VARCHAR, closed_at TIMESTAMPTZ
SELECT
    incident_id,
    kind,
    subject,
    closed_at
FROM incident
ORDER BY opened_at, incident_id
