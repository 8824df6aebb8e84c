-- Which discards lack their reason, the limit that held, or the settings that set it?
-- Only the reason `sibling` has no limit. The settings are those of the pass that discarded.
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (sample), detail VARCHAR
SELECT
    'discard_unexplained' AS rule,
    d.sample_id AS subject,
    CASE
        WHEN d.reason IS NULL THEN 'no reason'
        WHEN d.reason <> 'sibling' AND d.limit IS NULL THEN d.reason || ': no limit'
        WHEN p.settings_fingerprint IS NULL THEN d.reason || ': its pass names no settings'
        ELSE d.reason || ': settings ' || p.settings_fingerprint || ' are not stored'
    END AS detail
FROM dispositions AS d
LEFT JOIN (
    SELECT
        sequence,
        MIN(settings_fingerprint) AS settings_fingerprint
    FROM dispositions
    WHERE kind = 'pass'
    GROUP BY sequence
) AS p
    ON p.sequence = d.sequence
LEFT JOIN configs AS c
    ON c.fingerprint = p.settings_fingerprint AND c.kind = 'settings'
WHERE
    d.kind = 'discarded'
    AND (
        d.reason IS NULL
        OR (d.reason <> 'sibling' AND d.limit IS NULL)
        OR c.fingerprint IS NULL
    )
ORDER BY subject
