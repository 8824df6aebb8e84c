-- Which passes name no settings that are stored, so that their limits cannot be looked up?
-- params: none
-- returns: rule VARCHAR, subject VARCHAR (pass), detail VARCHAR
SELECT
    'pass_settings' AS rule,
    COALESCE(p.batch_id, 'pass ' || CAST(p.sequence AS VARCHAR)) AS subject,
    COALESCE('settings ' || p.settings_fingerprint || ' are not stored', 'names no settings')
        AS detail
FROM dispositions AS p
LEFT JOIN configs AS c
    ON c.fingerprint = p.settings_fingerprint AND c.kind = 'settings'
WHERE p.kind = 'pass' AND c.fingerprint IS NULL
ORDER BY subject
