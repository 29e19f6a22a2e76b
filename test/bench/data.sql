-- The data of the benchmark, the same at every run: 1,000 users, each with 3 trainers, 5 templates of 6
-- segments, 2 imported templates, 100 sessions of 5 segments, and a few locks.
--
-- A user's rows lie scattered over their table, as they would when users train on different days: row n belongs
-- to user (n - 1) % 1000 + 1.

-- Foreign keys hold by construction; checking 600,000 of them would take longer than the rest.
SET session_replication_role = replica;

INSERT INTO "User" (id, username, "subscriptionTier", league, rank, "totalPoints", "matchPoints", "profileTitle", "scheduleType", "activeTemplateId")
SELECT n, 'user' || n, 'ultra', n % 7, n, n * 31 % 9973, n * 17 % 997, 'Title ' || n,
       (ARRAY['auto', 'weekly', 'single'])[n % 3 + 1]::"ScheduleType", n + 2000
FROM generate_series(1, 1000) n;

-- The token of user n is dvt_ and n, filled up with zeros. Last used in the future: that Dovetail notes the use
-- of a token once a minute, which the other contestants do not, is not what the benchmark compares.
INSERT INTO "ApiToken" ("userId", name, slot, digest, "lastUsedAt")
SELECT n, 'bench', 1, sha256(convert_to('dvt_' || lpad(n::text, 43, '0'), 'UTF8')), now() + interval '1 day'
FROM generate_series(1, 1000) n;

INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress", "serialNumber", "softwareVersion", "lastVisited", "lastLogAt", "createdDate", "apiHits")
SELECT n, 'dtt-' || md5('device' || n), (n - 1) % 1000 + 1, regexp_replace(upper(lpad(to_hex(n), 12, '0')), '(..)(?!$)', '\1:', 'g'), 'SN-' || n, '2.' || n % 9,
       CASE WHEN n % 11 > 0 THEN timestamptz '2026-01-01Z' + n * interval '37 minutes' END,
       timestamptz '2026-01-01Z' + n * interval '35 minutes', timestamptz '2025-01-01Z' + n * interval '1 minute', n % 500
FROM generate_series(1, 3000) n;

INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, description, tagline, message, "isPublic", "handsFreeMode", "targetDepth", "targetWindow", "createdDate", "updatedAt")
SELECT n, 'template-' || md5('template' || n), (n - 1) % 1000 + 1, 'Program ' || n,
       'A program that starts slowly and asks for more, number ' || n, 'Slow and steady', 'Well done',
       n <= 2000, n % 4 = 0, 100 + n % 50, 5 + n % 10 / 2.0,
       timestamptz '2025-06-01Z' + n * interval '11 minutes', timestamptz '2025-09-01Z' + n * interval '13 minutes'
FROM generate_series(1, 5000) n;

INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration, repeat)
SELECT n, position, CASE position WHEN 0 THEN 'warmup' ELSE 'training' END, 30 + (n + position) % 60, 1 + position % 3
FROM generate_series(1, 5000) n, generate_series(0, 5) position;

-- Each template is in the library of its owner.
INSERT INTO "DttLibraryEntry" ("userId", "templateId") SELECT "ownerId", id FROM "DttTemplate";

-- Each user has imported one public template of the next user, and one of the user after that.
INSERT INTO "DttLibraryEntry" ("userId", "templateId", "importedAt")
SELECT n, (n + k - 1) % 1000 + 1 + 1000 * (k - 1), timestamptz '2025-12-01Z' + n * interval '1 minute'
FROM generate_series(1, 1000) n, generate_series(1, 2) k;

-- Most sessions follow a template of the owner, some an imported one, some none.
INSERT INTO "DttSession" (id, "bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId")
SELECT n, 'session-' || md5('session' || n), owner, CASE WHEN n % 4 > 0 THEN 'Session ' || n END,
       CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN false ELSE true END,
       timestamptz '2026-01-01Z' + n * interval '2 minutes', owner + 1000 * (n / 1000 % 3),
       CASE n / 1000 % 7 WHEN 5 THEN owner % 1000 + 1 WHEN 6 THEN NULL ELSE owner + 1000 * (n / 1000 % 7) END
FROM generate_series(1, 100000) n, LATERAL (SELECT (n - 1) % 1000 + 1 AS owner) o;

INSERT INTO "TrainerSegment" ("sessionId", type, passed, "percentGrade", points, "durationMeasured", "durationTarget", "repsMeasured", "repsTarget", "speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat", "strokeLength", "distanceTravelled", "order", "createdAt")
SELECT n, (ARRAY['repetition', 'endurance', 'freeform', 'bounce'])[(n + k) % 4 + 1],
       (n + k) % 6 > 0, (n * 7 + k) % 1000 / 10.0, (n + k) % 50, 30 + (n + k) % 90, 60, (n + k) % 40, 30,
       (n + k) % 30 / 10.0, 1.5, 120.5, 7.5, (n * 3 + k) % 9000, 80.25, (n + k) % 500 / 10.0, k,
       timestamptz '2026-01-01Z' + n * interval '2 minutes' + k * interval '20 seconds'
FROM generate_series(1, 100000) n, generate_series(1, 5) k;

INSERT INTO "LkbxDevice" ("bubbleId", "macAddress", "ownerId", locked, "lastVisited")
SELECT 'lkbx-' || n, regexp_replace(upper(lpad(to_hex(n + 65536), 12, '0')), '(..)(?!$)', '\1:', 'g'), n, n % 2 = 0, timestamptz '2026-01-01Z' + n * interval '1 minute'
FROM generate_series(1, 1000) n;

INSERT INTO "LockTemplate" (id, "ownerId", name, duration, "createdAt")
SELECT n, (n - 1) % 1000 + 1, 'Lock ' || n, 3600 * (n % 24 + 1), timestamptz '2026-01-01Z' + n * interval '1 minute'
FROM generate_series(1, 2000) n;

INSERT INTO "LockSession" (id, "bubbleId", "publicId", "ownerId", name, "lockState", duration, "startDate", "isActive", "templateId")
SELECT n, 'lock-' || n, 'public-' || n, (n - 1) % 1000 + 1, 'Lock session ' || n,
       CASE WHEN n > 4000 THEN 'locked' ELSE 'completed' END, 7200, timestamptz '2026-01-01Z' + n * interval '1 hour',
       n > 4000, (n - 1) % 1000 + 1
FROM generate_series(1, 5000) n;

INSERT INTO "LockSegment" ("sessionId", type, "createdAt", "isLocked")
SELECT n, 'start', timestamptz '2026-01-01Z' + n * interval '1 hour' + k * interval '5 minutes', k % 2 = 0
FROM generate_series(1, 5000) n, generate_series(0, 3) k;

SELECT setval(pg_get_serial_sequence(format('%I', name), 'id'), 1000000)
FROM unnest(ARRAY['User', 'DttDevice', 'DttTemplate', 'DttSession', 'LockTemplate', 'LockSession']) name;

SET session_replication_role = DEFAULT;
