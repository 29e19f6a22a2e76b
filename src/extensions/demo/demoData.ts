/** The data of the demo account: devices, programs and a year of history. It is SQL, since Prisma's client would slow a first start. */

import type pg from 'pg';

export const demoUsername = 'demo';

/**
 * Writes all the data, in a transaction, with one statement for all rows of a table, since one for each row would take seconds.
 * @param now the time of loading. Only the times of the data depend on it.
 */
export async function loadDemoData(client: pg.PoolClient, now: Date): Promise<void> {
  const ago = (days: number | string) => `timestamptz '${now.toISOString()}' - ${days} * interval '24 hours'`;
  for (const statementsOf of [users, devices, templates, trainings, locks])
    await client.query(statementsOf(ago));
}

/** Returns the SQL for the time so many days before the account is loaded. */
type Ago = (days: number | string) => string;

const owner = `(SELECT id FROM "User" WHERE username = '${demoUsername}')`;

/** Without `jit = off` a server would compile the statements, for seconds. */
const users = () => `SET LOCAL jit = off;
  INSERT INTO "User" (username, "subscriptionTier", league, rank, "matchPoints", "profileImage", "profileTitle", "profileDescription")
  VALUES
    ('${demoUsername}', 'ultra', 3, 150, 800, 'https://example.com/demo.jpg', 'Explorer', 'The account that comes with Dovetail.'),
    ('coach', DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, 'Coach', 'The author of a program.')`;

const devices = (ago: Ago) => `
  INSERT INTO "DttDevice"
    ("bubbleId", "ownerId", "macAddress", "serialNumber", "softwareVersion", "lastVisited", "lastLogAt", "createdDate", "apiHits")
  VALUES
    ('dtt-demo-1', ${owner}, '02:00:00:00:00:01', '1001', '2.1.0', ${ago(0.2)}, ${ago(0.2)}, ${ago(400)}, 256),
    ('dtt-demo-2', ${owner}, '02:00:00:00:00:02', '1002', '2.0.3', ${ago(46.2)}, ${ago(46.2)}, ${ago(90)}, 31),
    ('dtt-demo-3', ${owner}, '02:00:00:00:00:03', '1003', '2.1.0', NULL, NULL, ${ago(1)}, 0);
  INSERT INTO "LkbxDevice" ("bubbleId", "ownerId", "macAddress", locked, "hueShift", "lastVisited", "lastLogAt")
  VALUES ('lkbx-demo-1', ${owner}, '02:00:00:00:01:01', true, 120, ${ago(0.2)}, ${ago(0.2)}),
    ('lkbx-demo-2', ${owner}, '02:00:00:00:01:02', false, 285, ${ago(138)}, ${ago(138)});
  INSERT INTO "OssmDevice" ("bubbleId", "ownerId", "macAddress", chip, "lastVisited", "OSSMFirmwareId")
  VALUES ('ossm-demo-1', ${owner}, '02:00:00:00:02:01', 'ESP32-S3', ${ago(3)}, 5)`;

/** The first template is active, and the fourth one is imported from the coach. The last one is a draft without segments. */
const templates = (ago: Ago) => `
  INSERT INTO "DttTemplate"
    ("bubbleId", "ownerId", name, description, tagline, message, "isPublic", "handsFreeMode", "targetDepth", "targetWindow",
      "createdDate", "updatedAt")
  VALUES
    ('prog-demo-1', ${owner}, 'Beginner Program', 'A gentle introduction', 'Start here', 'Welcome!',
      true, false, 50, 10, ${ago(380)}, ${ago(16)}),
    ('prog-demo-2', ${owner}, 'Endurance', 'Two long segments with a warm-up before and a cool-down after them', 'Slow and long',
      'Take your time.', false, true, 70, 15, ${ago(250)}, ${ago(100)}),
    ('prog-demo-3', ${owner}, 'Intervals', 'Eight short segments without a warm-up', 'Short and often',
      'Breathe between two of them.', false, false, 60, 12.5, ${ago(30)}, ${ago(30)}),
    ('prog-demo-4', (SELECT id FROM "User" WHERE username = 'coach'), 'Coach’s Pick', 'Imported from the coach',
      'For those who know how', 'You are ready for this.', true, false, 80, 10, ${ago(200)}, ${ago(150)}),
    ('prog-demo-5', ${owner}, 'Pyramid: longer and longer, and back again', 'Grows to four minutes, with rests', 'Up and down',
      'The third step is the hardest.', true, true, 65, 7.5, ${ago(160)}, ${ago(48)}),
    ('prog-demo-6', ${owner}, 'Sunday, draft', '', '', '', false, false, 55, 20, ${ago(75)}, ${ago(75)});
  INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration, repeat)
  SELECT t.id, position, type, duration, repeat
  FROM (VALUES
      (1, 0, 'warmup', 60, 1), (1, 1, 'training', 300, 3),
      (2, 0, 'warmup', 60, 1), (2, 1, 'training', 600, 2), (2, 2, 'cooldown', 120, 1),
      (3, 0, 'training', 45, 8),
      (4, 0, 'warmup', 60, 1), (4, 1, 'training', 240, 5),
      (5, 0, 'warmup', 90, 1), (5, 1, 'training', 60, 2), (5, 2, 'rest', 30, 1), (5, 3, 'training', 120, 2), (5, 4, 'rest', 30, 1),
      (5, 5, 'training', 240, 1), (5, 6, 'rest', 30, 1), (5, 7, 'training', 120, 2), (5, 8, 'cooldown', 180, 1)
    ) s (template, position, type, duration, repeat)
    JOIN "DttTemplate" t ON "bubbleId" = 'prog-demo-' || template
  ORDER BY template, position;
  UPDATE "User" SET "activeTemplateId" = (SELECT id FROM "DttTemplate" WHERE "bubbleId" = 'prog-demo-1')
  WHERE username = '${demoUsername}';
  INSERT INTO "DttLibraryEntry" ("userId", "templateId", "importedAt")
  SELECT ${owner}, id, ${ago(190)} FROM "DttTemplate" WHERE "bubbleId" = 'prog-demo-4'`;

/**
 * The trainings of about a year, in series: the days since the last one of each, their number, and the days between two of them. The
 * figures vary with the number of a training and improve over the year, but one training in thirteen went badly. One in five has no
 * template and no goal, so it neither passed nor failed. The first template replaces one that did not exist yet. The second device
 * is used for half of the trainings while it was in use.
 */
const trainings = (ago: Ago) => `
  WITH training AS (
      SELECT 60 - index AS number, age + index * 5 % 7 / 24.0 AS days
      FROM (
          SELECT since + turn * every AS age, row_number() OVER (ORDER BY since + turn * every) - 1 AS index
          FROM (VALUES (0.2, 14, 2), (46.2, 20, 1.5), (121.2, 6, 10), (211.2, 20, 8)) series (since, count, every),
            generate_series(0, count - 1) turn
        ) turns
    ),
    segment AS (
      SELECT *, round(57 - days / 40 + (number * 17 + place * 29) % 37 - CASE WHEN number % 13 = 0 THEN 25 ELSE 0 END) AS grade
      FROM training, string_to_table((ARRAY['repetition endurance freeform bounce', 'repetition endurance endurance',
          'bounce repetition bounce repetition bounce', 'repetition endurance bounce freeform', 'freeform'])[number % 5 + 1], ' ')
        WITH ORDINALITY part (type, place) NATURAL LEFT JOIN
        (VALUES ('repetition', 60, 20, 1.2), ('endurance', 120, 30, 0.9), ('bounce', 45, 24, 1.8)) goal (type, seconds, reps, speed)
    ),
    session AS (
      INSERT INTO "DttSession" ("bubbleId", "ownerId", "createdAt", name, passed, "trainerId", "templateId")
      SELECT 'session-demo-' || number, ${owner}, ${ago('days')}, CASE WHEN number % 3 = 0 THEN 'Session ' || number END,
        (SELECT bool_and(grade >= 60) FROM segment s WHERE s.number = t.number AND type <> 'freeform'),
        (SELECT id FROM "DttDevice" WHERE "bubbleId" =
          CASE WHEN number % 2 = 0 AND days >= 46 AND days < 90 THEN 'dtt-demo-2' ELSE 'dtt-demo-1' END),
        (SELECT id FROM "DttTemplate" WHERE number % 5 < 4 AND "bubbleId" = 'prog-demo-' ||
          CASE WHEN days < (ARRAY[380, 250, 30, 190])[number % 5 + 1] THEN number % 5 + 1 ELSE 1 END)
      FROM training t ORDER BY number DESC
      RETURNING id, "bubbleId", "createdAt"
    )
  INSERT INTO "TrainerSegment"
    ("sessionId", type, "order", "createdAt", passed, "percentGrade", points, "durationMeasured", "durationTarget", "repsMeasured",
      "repsTarget", "speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat", "strokeLength", "distanceTravelled")
  SELECT id, type, place - 1, "createdAt", CASE WHEN type <> 'freeform' THEN grade >= 60 END, grade, grade * 2,
    coalesce(seconds * least(grade + 30, 100) / 100, 90 + number % 7 * 20), seconds, coalesce(reps, 40) * (grade + 30) / 100, reps,
    round(coalesce(speed, 1) * (grade + 30) / 100, 2), speed, 50, 10, 1500 + number * 40, 62.5, coalesce(reps, 40) * (grade + 30) / 800
  FROM segment JOIN session ON "bubbleId" = 'session-demo-' || number
  ORDER BY number DESC, place;
  UPDATE "User" SET ("totalPoints", "dttTotalReps", "dttTotalSessions") =
    (SELECT sum(points), sum("repsMeasured"), count(DISTINCT "sessionId") FROM "TrainerSegment")
  WHERE username = '${demoUsername}'`;

/**
 * Lock sessions of each state: the active one, the ended ones, the last of them first, one that was never started, and one that was
 * opened in an emergency. Each has the hours from its start to its events, and the kind of the fourth. The end of the active session
 * follows from its duration, and the session that is still in its break has no end.
 */
const locks = (ago: Ago) => `
  INSERT INTO "LockTemplate"
    ("ownerId", name, duration, "isRandomDuration", "isBreakEnabled", "breakRegularity", "isEmergencyUnlockEnabled", "createdAt")
  VALUES
    (${owner}, 'Weekend Lock', 172800, false, true, 3600, true, ${ago(370)}),
    (${owner}, 'Evening', 14400, true, false, 0, false, ${ago(150)}),
    (${owner}, 'One Week', 604800, false, true, 86400, true, ${ago(155)});
  WITH given (number, state, days, template, hours, ending) AS (VALUES
      (1, 'locked', 1, 'Weekend Lock', ARRAY[0, 12, 12.2], NULL),
      (2, 'completed', 23, 'Weekend Lock', ARRAY[0, 12, 12.2, 48], 'end'),
      (3, 'abandoned', 61, 'Evening', ARRAY[0, 1, 1.2, 1.5], 'end'),
      (4, 'break', 140, 'Weekend Lock', ARRAY[0, 30], NULL),
      (5, 'completed', 352, NULL, ARRAY[0, 12, 12.2, 48], 'end'),
      (6, 'pending', 4, 'Weekend Lock', ARRAY[0], NULL),
      (7, 'abandoned', 40, 'One Week', ARRAY[0, 24, 24.5, 61.3], 'emergency')
    ),
    session AS (
      INSERT INTO "LockSession"
        ("bubbleId", "publicId", "ownerId", "templateId", name, "lockState", duration, "startDate", "createdAt", "endDate", "isActive")
      SELECT 'lock-demo-' || number, 'LOCK' || number, ${owner}, t.id, coalesce(template, 'Weekend Lock'), state,
        coalesce(duration, 172800), ${ago('days')}, ${ago('days')}, ${ago('(days - hours[4] / 24)')}, state = 'locked'
      FROM given LEFT JOIN "LockTemplate" t ON t.name = template ORDER BY number
      RETURNING id, "bubbleId"
    )
  INSERT INTO "LockSegment" ("sessionId", type, "createdAt", "isLocked")
  SELECT id, CASE state WHEN 'pending' THEN 'created' ELSE (ARRAY['start', 'break', 'lock', ending])[place] END,
    ${ago('(days - hour / 24)')}, state <> 'pending' AND place % 2 = 1
  FROM given JOIN session ON "bubbleId" = 'lock-demo-' || number, unnest(hours) WITH ORDINALITY events (hour, place)
  ORDER BY number, place`;
