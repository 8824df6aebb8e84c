-- What did the newest decision leave for the next, and which settings did the newest pass have?
-- dialect: duckdb
-- params: none
-- returns: low_water BIGINT, current_version BIGINT, balance VARCHAR (JSON),
--   settings VARCHAR (JSON; null where there was no pass, or they are not stored)
SELECT
    d.low_water,
    (SELECT MAX(weight_version) FROM weights) AS current_version,
    d.balance,
    c.document AS settings
FROM (
    SELECT
        MAX(low_water) AS low_water,
        arg_max(balance, sequence) AS balance,
        arg_max(settings_fingerprint, sequence) FILTER (WHERE kind = 'pass') AS fingerprint
    FROM dispositions
) AS d
LEFT JOIN configs AS c
    ON c.fingerprint = d.fingerprint AND c.kind = 'settings'
