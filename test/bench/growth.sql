-- Four more users, with 100, 1,000, 10,000 and 100,000 sessions of 5 segments: the users 2001 to 2004. Each has
-- one trainer and one template, whose ids are the user's.

SET session_replication_role = replica;

INSERT INTO "User" (id, username, "subscriptionTier", "activeTemplateId")
SELECT n, 'user' || n, 'ultra', n FROM generate_series(2001, 2004) n;

INSERT INTO "ApiToken" ("userId", name, slot, digest, "lastUsedAt")
SELECT n, 'bench', 1, sha256(convert_to('dvt_' || lpad(n::text, 43, '0'), 'UTF8')), now() + interval '1 day'
FROM generate_series(2001, 2004) n;

INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress", "lastVisited")
SELECT n + 8000, 'dtt-' || n, n, regexp_replace(upper(lpad(to_hex(n), 12, '0')), '(..)(?!$)', '\1:', 'g'), timestamptz '2026-01-01Z' FROM generate_series(2001, 2004) n;

INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, "targetDepth", "targetWindow")
SELECT n + 8000, 'template-' || n, n, 'Program ' || n, 100, 5 FROM generate_series(2001, 2004) n;

INSERT INTO "DttLibraryEntry" ("userId", "templateId") SELECT "ownerId", id FROM "DttTemplate" WHERE id > 10000;

UPDATE "User" SET "activeTemplateId" = id + 8000 WHERE id > 2000;

INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration)
SELECT n + 8000, position, 'training', 30 FROM generate_series(2001, 2004) n, generate_series(0, 5) position;

-- The sessions of user 2001 have the ids from 1,000,001, those of user 2002 from 2,000,001, and so on.
INSERT INTO "DttSession" (id, "bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId")
SELECT u * 1000000 + n, 'session-' || u || '-' || n, 2000 + u, 'Session ' || n, n % 5 > 0,
       timestamptz '2024-01-01Z' + n * interval '5 minutes', 10000 + u, 10000 + u
FROM generate_series(1, 4) u, generate_series(1, (10 ^ (u + 1))::int) n;

INSERT INTO "TrainerSegment" ("sessionId", type, passed, "percentGrade", points, "durationMeasured", "durationTarget", "order")
SELECT u * 1000000 + n, 'repetition', n % 6 > 0, n % 1000 / 10.0, n % 50, 60, 60, k
FROM generate_series(1, 4) u, generate_series(1, (10 ^ (u + 1))::int) n, generate_series(1, 5) k;

SET session_replication_role = DEFAULT;
