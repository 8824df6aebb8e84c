-- Which incidents were there, of what kind, about what, and how long did each last?
-- Open ones come first. One that is open lasts until now. figures are those of its opening.
-- dialect: duckdb
-- params: open_only BOOLEAN
-- returns: kind VARCHAR, subject VARCHAR (stream, task type or gate), opened_at TIMESTAMPTZ,
--   closed_at TIMESTAMPTZ (null while it is open), seconds DOUBLE (s), figures VARCHAR (JSON)
SELECT
    i.kind,
    i.subject,
    i.opened_at,
    i.closed_at,
    CAST(epoch_us(COALESCE(i.closed_at, m.now)) - epoch_us(i.opened_at) AS DOUBLE) / 1000000
        AS seconds,
    i.figures
FROM incident AS i
CROSS JOIN moment AS m
WHERE i.closed_at IS NULL OR NOT COALESCE(CAST($open_only AS BOOLEAN), FALSE)
ORDER BY i.closed_at IS NOT NULL, i.opened_at, i.incident_id
