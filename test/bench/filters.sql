-- One more user, 2005, with 100,000 sessions in which there is something to filter and to order by: three trainers, five
-- templates, some names and results that are not known. And as many sessions of the others as make a million of them all.

SET session_replication_role = replica;

INSERT INTO "User" (id, username, "subscriptionTier") VALUES (2005, 'user2005', 'ultra');

INSERT INTO "ApiToken" ("userId", name, slot, digest, "lastUsedAt")
VALUES (2005, 'bench', 1, sha256(convert_to('dvt_' || lpad('2005', 43, '0'), 'UTF8')), now() + interval '1 day');

INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "serialNumber", "lastVisited")
SELECT 20000 + n, 'dtt-2005-' || n, 2005, 'SN-' || n, timestamptz '2026-01-01Z' + n * interval '1 hour' FROM generate_series(1, 3) n;

INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, "targetDepth", "targetWindow")
SELECT 20000 + n, 'template-2005-' || n, 2005, 'Program ' || n, 100, 5 FROM generate_series(1, 5) n;

INSERT INTO "DttLibraryEntry" ("userId", "templateId") SELECT "ownerId", id FROM "DttTemplate" WHERE id > 20000;

INSERT INTO "DttSession" (id, "bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId")
SELECT 10000000 + n, 'session-2005-' || n, 2005, CASE WHEN n % 4 > 0 THEN 'Session ' || n END,
       CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN false ELSE true END,
       timestamptz '2024-01-01Z' + n * interval '7 minutes', 20001 + n % 3, CASE WHEN n % 6 > 0 THEN 20000 + n % 6 END
FROM generate_series(1, 100000) n;

INSERT INTO "DttSession" (id, "bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId")
SELECT 20000000 + n, 'session-more-' || n, owner, 'Session ' || n, n % 5 > 0,
       timestamptz '2024-01-01Z' + n * interval '1 minute', owner, owner
FROM generate_series(1, 690000) n, LATERAL (SELECT (n - 1) % 1000 + 1 AS owner) o;

SET session_replication_role = DEFAULT;
