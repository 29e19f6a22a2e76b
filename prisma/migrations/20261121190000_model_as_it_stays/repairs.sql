-- What this migration finds in a database that does not keep the new rules, and what becomes of it: read before it is
-- applied, by `dovetail doctor` and by whoever applies it. Each row is a finding, and how many records it is about.

WITH "mirrored" AS (SELECT "userId" FROM "Mirror"),
"stand_in" AS (
  SELECT id FROM "User" WHERE EXISTS (TABLE "mirrored") AND id NOT IN (TABLE "mirrored") AND username = 'upstream-user-' || id
),
"digits" AS (
  SELECT "macAddress", upper(regexp_replace("macAddress", '[-:.\s]', '', 'g')) AS hex FROM (
    SELECT "macAddress" FROM "DttDevice" WHERE "ownerId" NOT IN (TABLE "stand_in")
    UNION ALL SELECT "macAddress" FROM "LkbxDevice" UNION ALL SELECT "macAddress" FROM "OssmDevice") AS device
  WHERE "macAddress" !~ '^[0-9A-F]{2}(:[0-9A-F]{2}){5}$'
),
"used" AS (
  SELECT row_number() OVER (PARTITION BY "userId" ORDER BY "lastUsedAt" DESC NULLS LAST, id DESC) AS place
  FROM "ApiToken" WHERE "revokedAt" IS NULL AND octet_length(digest) = 32
),
"finding" (what, number) AS (VALUES
  ('users that stood for owners upstream, whose templates now name the owner by a number alone',
    (SELECT count(*) FROM "stand_in")),
  ('devices that stood for ones that are not here, which sessions now name by a number alone',
    (SELECT count(*) FROM "DttDevice" WHERE "ownerId" IN (TABLE "stand_in"))),
  ('templates that stood for ones that are not here, which sessions now name by a number alone',
    (SELECT count(*) FROM "DttTemplate" WHERE "ownerId" IN (SELECT id FROM "stand_in" WHERE id = 0))),
  ('mirrored accounts, in which defaults become null until the next refresh, since nobody was told them',
    (SELECT count(*) FROM "mirrored")),
  ('usernames that differ in case alone, of which the later gets its id behind it',
    (SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY lower(username) ORDER BY id) AS place FROM "User"
                           WHERE id NOT IN (TABLE "stand_in")) AS u
     WHERE place > 1)),
  ('blank names, which become the kind of record and its id',
    (SELECT count(*) FROM "User" WHERE username !~ '\S') + (SELECT count(*) FROM "ApiToken" WHERE name !~ '\S') +
    (SELECT count(*) FROM "DttTemplate" WHERE name !~ '\S' AND "ownerId" NOT IN (SELECT id FROM "stand_in" WHERE id = 0)) +
    (SELECT count(*) FROM "LockTemplate" WHERE name !~ '\S')),
  ('tokens whose digest is not one, so that nothing can be asked with them, which are deleted',
    (SELECT count(*) FROM "ApiToken" WHERE octet_length(digest) <> 32)),
  ('tokens in use beyond a user''s five, of which the ones used longest ago are revoked',
    (SELECT count(*) FROM "used" WHERE place > 5)),
  ('users with a number below 0, which becomes null',
    (SELECT count(*) FROM "User" WHERE least(league, rank, "dttTotalReps", "dttTotalSessions") < 0)),
  ('users whose active template is none of theirs, so that they have no active one',
    (SELECT count(*) FROM "User" AS u JOIN "DttTemplate" AS t ON t.id = "activeTemplateId" WHERE "ownerId" <> u.id
     AND NOT EXISTS (SELECT FROM "DttTemplateImport" WHERE "userId" = u.id AND "templateId" = t.id))),
  ('imports of one''s own template, which are no imports any more',
    (SELECT count(*) FROM "DttTemplateImport" JOIN "DttTemplate" ON id = "templateId" WHERE "ownerId" = "userId")),
  ('MAC addresses that are put into upper case with colons',
    (SELECT count(*) FROM "digits" WHERE hex ~ '^[0-9A-F]{12}$')),
  ('MAC addresses that are none, which become null',
    (SELECT count(*) FROM "digits" WHERE hex !~ '^[0-9A-F]{12}$')),
  ('devices with a number of requests below 0, which becomes null',
    (SELECT count(*) FROM "DttDevice" WHERE "apiHits" < 0)),
  ('templates, lockboxes and their parts with a number that makes no sense, which becomes 0',
    (SELECT count(*) FROM "DttTemplate" WHERE greatest("targetDepth", "targetWindow") >= 'Infinity'
       OR least("targetDepth", "targetWindow") = '-Infinity') +
    (SELECT count(*) FROM "LkbxDevice" WHERE "hueShift" >= 'Infinity' OR "hueShift" = '-Infinity') +
    (SELECT count(*) FROM "DttTemplateSegment" WHERE duration < 0) +
    (SELECT count(*) FROM "LockTemplate" WHERE duration < 0) + (SELECT count(*) FROM "LockSession" WHERE duration < 0)),
  ('template segments and lock templates with a number below 0, which becomes null',
    (SELECT count(*) FROM "DttTemplateSegment" WHERE repeat < 0) +
    (SELECT count(*) FROM "LockTemplate" WHERE "breakRegularity" < 0)),
  ('templates with a segment at a place below 0, whose segments are numbered anew',
    (SELECT count(DISTINCT "templateId") FROM "DttTemplateSegment" WHERE position < 0)),
  ('results of training with a number that makes no sense, which becomes null',
    (SELECT count(*) FROM "TrainerSegment" WHERE "percentGrade" > 100
       OR greatest("speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat", "strokeLength", "distanceTravelled") >= 'Infinity'
       OR least("speedMeasured", "speedTarget", "targetDepth", "targetWindow", "strokeLength") = '-Infinity'
       OR least("percentGrade", "longestDeepthroat", "distanceTravelled") < 0
       OR least("durationMeasured", "durationTarget", "repsMeasured", "repsTarget") < 0)),
  ('sessions of which two segments have one place, or one has a place below 0, whose segments are numbered anew',
    (SELECT count(*) FROM (SELECT FROM "TrainerSegment" GROUP BY "sessionId"
     HAVING count(*) > count(DISTINCT "order") OR min("order") < 0) AS s)),
  ('sessions on a device of somebody else, which name it by a number alone',
    (SELECT count(*) FROM "DttSession" AS s JOIN "DttDevice" AS d ON d.id = "trainerId"
     WHERE d."ownerId" <> s."ownerId" AND d."ownerId" NOT IN (TABLE "stand_in"))),
  ('lock sessions from a template of somebody else, which name none any more',
    (SELECT count(*) FROM "LockSession" AS s JOIN "LockTemplate" AS t ON t.id = "templateId" WHERE t."ownerId" <> s."ownerId")),
  ('lock sessions that are over and say that they are active, which say so no more',
    (SELECT count(*) FROM "LockSession" WHERE "isActive" AND "lockState" IN ('completed', 'abandoned')))
)
SELECT what, number::int AS number FROM "finding" WHERE number > 0;
