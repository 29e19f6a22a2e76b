/** The data of the demo account: devices, programs and a year of history. */

import type pg from 'pg';
import { insertRows } from './insertRows.ts';

export const demoUsername = 'demo';

const day = 24 * 60 * 60 * 1000;

/** Returns the time so many days before the account is loaded. */
type Ago = (days: number) => Date;

/**
 * Writes all the data, with one statement for all rows of a table, since one for each row would take seconds.
 * @param now the time of loading. Only the times of the data depend on it.
 */
export async function loadDemoData(client: pg.PoolClient, now: Date): Promise<void> {
  const ago: Ago = (days) => new Date(now.getTime() - days * day);
  const trainings = trainingsUntil(ago);
  const segments = trainings.flatMap((training) => training.segments);
  const [ownerId, coachId] = await insertRows(client, 'User', [
    {
      username: demoUsername,
      subscriptionTier: 'ultra',
      league: 3,
      rank: 150,
      totalPoints: segments.reduce((sum, { points }) => sum + points, 0),
      matchPoints: 800,
      profileImage: 'https://example.com/demo.jpg',
      profileTitle: 'Explorer',
      profileDescription: 'The account that comes with Dovetail.',
      dttTotalReps: segments.reduce((sum, { repsMeasured }) => sum + repsMeasured, 0),
      dttTotalSessions: trainings.length,
    },
    { username: 'coach', profileTitle: 'Coach', profileDescription: 'The author of a program.' },
  ]);
  const trainerIds = await loadTrainers(client, ownerId, ago);
  const templateIds = await loadTemplates(client, { ownerId, coachId, ago });
  await loadTrainings(client, trainings, { ownerId, trainerIds, templateIds });
  await loadLocks(client, ownerId, ago);
  await insertRows(client, 'OssmDevice', [
    {
      bubbleId: 'ossm-demo-1',
      macAddress: '02:00:00:00:02:01',
      chip: 'ESP32-S3',
      ownerId,
      lastVisited: ago(3),
      OSSMFirmwareId: 5,
    },
  ]);
}

/** Writes the devices of `trainers`, and one that was never visited. */
async function loadTrainers(client: pg.PoolClient, ownerId: number, ago: Ago): Promise<readonly number[]> {
  const [first, second] = trainers;
  return insertRows(client, 'DttDevice', [
    {
      bubbleId: 'dtt-demo-1',
      ownerId,
      macAddress: '02:00:00:00:00:01',
      serialNumber: '1001',
      softwareVersion: '2.1.0',
      lastVisited: ago(first.until),
      lastLogAt: ago(first.until),
      createdDate: ago(first.since),
      apiHits: 256,
    },
    {
      bubbleId: 'dtt-demo-2',
      ownerId,
      macAddress: '02:00:00:00:00:02',
      serialNumber: '1002',
      softwareVersion: '2.0.3',
      lastVisited: ago(second.until),
      lastLogAt: ago(second.until),
      createdDate: ago(second.since),
      apiHits: 31,
    },
    {
      bubbleId: 'dtt-demo-3',
      ownerId,
      macAddress: '02:00:00:00:00:03',
      serialNumber: '1003',
      softwareVersion: '2.1.0',
      createdDate: ago(1),
    },
  ]);
}

/** Writes the templates. The first one is active, and the last one is imported from the coach. */
async function loadTemplates(
  client: pg.PoolClient,
  { ownerId, coachId, ago }: { ownerId: number; coachId: number; ago: Ago },
): Promise<number[]> {
  const programs = templatesOf(ownerId, coachId, ago);
  const templateIds = await insertRows(
    client,
    'DttTemplate',
    programs.map(({ segments, ...template }) => template),
  );
  const segments = partsOf(programs, templateIds, (templateId, position) => ({ templateId, position }));
  await insertRows(client, 'DttTemplateSegment', segments);
  const [beginner, , , imported] = templateIds;
  await client.query('UPDATE "User" SET "activeTemplateId" = $2 WHERE id = $1', [ownerId, beginner]);
  await client.query(
    'INSERT INTO "DttLibraryEntry" ("userId", "templateId", "importedAt") VALUES ($1, $2, $3)',
    [ownerId, imported, ago(templatesSince[3])],
  );
  return templateIds;
}

async function loadTrainings(
  client: pg.PoolClient,
  trainings: readonly Training[],
  {
    ownerId,
    trainerIds,
    templateIds,
  }: { ownerId: number; trainerIds: readonly number[]; templateIds: readonly number[] },
): Promise<void> {
  const sessionIds = await insertRows(
    client,
    'DttSession',
    trainings.map(({ segments, trainer, template, ...session }) => ({
      ...session,
      ownerId,
      trainerId: trainerIds[trainer] ?? null,
      templateId: template === undefined ? null : (templateIds[template] ?? null),
    })),
  );
  const segments = partsOf(trainings, sessionIds, (sessionId) => ({ sessionId }));
  await insertRows(client, 'TrainerSegment', segments);
}

async function loadLocks(client: pg.PoolClient, ownerId: number, ago: Ago): Promise<void> {
  await insertRows(client, 'LkbxDevice', [
    {
      bubbleId: 'lkbx-demo-1',
      macAddress: '02:00:00:00:01:01',
      ownerId,
      locked: true,
      hueShift: 120,
      lastVisited: ago(0.2),
      lastLogAt: ago(0.2),
    },
  ]);
  const [weekend, evening] = await insertRows(client, 'LockTemplate', [
    {
      ownerId,
      name: 'Weekend Lock',
      duration: 172_800,
      isBreakEnabled: true,
      breakRegularity: 3_600,
      isEmergencyUnlockEnabled: true,
      createdAt: ago(370),
    },
    { ownerId, name: 'Evening', duration: 14_400, isRandomDuration: true, createdAt: ago(150) },
  ]);
  const lockings = lockSessionsOf({ weekend, evening, ago });
  const sessionIds = await insertRows(
    client,
    'LockSession',
    lockings.map(({ segments, ...session }) => ({ ...session, ownerId })),
  );
  const segments = partsOf(lockings, sessionIds, (sessionId) => ({ sessionId }));
  await insertRows(client, 'LockSegment', segments);
}

/** The segments of records that were written with these ids, each with the columns that tie it to its record. */
const partsOf = <Part extends object, Link extends object>(
  records: readonly { readonly segments: readonly Part[] }[],
  ids: readonly number[],
  linkTo: (id: number, index: number) => Link,
): (Part & Link)[] =>
  records.flatMap(({ segments }, place) =>
    segments.map((segment, index) => ({ ...segment, ...linkTo(ids[place] ?? 0, index) })),
  );

/** The rows of three templates of the demo user and, at the end, one of the coach. */
function templatesOf(ownerId: number, coachId: number, ago: Ago) {
  const [beginner, endurance, intervals] = templatesSince;
  const warmup = { type: 'warmup', duration: 60, repeat: 1 };
  return [
    {
      bubbleId: 'prog-demo-1',
      ownerId,
      name: 'Beginner Program',
      description: 'A gentle introduction',
      tagline: 'Start here',
      message: 'Welcome!',
      isPublic: true,
      targetDepth: 50,
      targetWindow: 10,
      createdDate: ago(beginner),
      updatedAt: ago(16),
      segments: [warmup, { type: 'training', duration: 300, repeat: 3 }],
    },
    {
      bubbleId: 'prog-demo-2',
      ownerId,
      name: 'Endurance',
      description: 'Two long segments with a warm-up before and a cool-down after them',
      tagline: 'Slow and long',
      message: 'Take your time.',
      targetDepth: 70,
      targetWindow: 15,
      handsFreeMode: true,
      createdDate: ago(endurance),
      updatedAt: ago(100),
      segments: [
        warmup,
        { type: 'training', duration: 600, repeat: 2 },
        { type: 'cooldown', duration: 120, repeat: 1 },
      ],
    },
    {
      bubbleId: 'prog-demo-3',
      ownerId,
      name: 'Intervals',
      description: 'Eight short segments without a warm-up',
      tagline: 'Short and often',
      message: 'Breathe between two of them.',
      targetDepth: 60,
      targetWindow: 12.5,
      createdDate: ago(intervals),
      updatedAt: ago(intervals),
      segments: [{ type: 'training', duration: 45, repeat: 8 }],
    },
    {
      bubbleId: 'prog-demo-4',
      ownerId: coachId,
      name: 'Coach’s Pick',
      description: 'Imported from the coach',
      tagline: 'For those who know how',
      message: 'You are ready for this.',
      isPublic: true,
      targetDepth: 80,
      targetWindow: 10,
      createdDate: ago(200),
      updatedAt: ago(150),
      segments: [warmup, { type: 'training', duration: 240, repeat: 5 }],
    },
  ];
}

/** The days, before the account is loaded, from and until which each device is in use. */
const trainers = [
  { since: 400, until: 0.2 },
  { since: 90, until: 12 },
] as const;

/** The days, before the account is loaded, on which the templates were created, in the same order. */
const templatesSince = [380, 250, 30, 190] as const;

/** Series of trainings, the last one first: their number, the days between two of them, and the days of pause before the series. */
const rhythm = [
  { count: 14, every: 2, pause: 18 },
  { count: 20, every: 1.5, pause: 45 },
  { count: 6, every: 10, pause: 30 },
  { count: 20, every: 8, pause: 0 },
];

/** A training session with its segments. It names its device and its template by their indices in the lists above. */
type Training = ReturnType<typeof trainingOf>;

/** The trainings of about a year, the last one first. */
function trainingsUntil(ago: Ago): Training[] {
  const ages: number[] = [];
  let age = trainers[0].until;
  for (const { count, every, pause } of rhythm) {
    for (let turn = 0; turn < count; turn++, age += every) ages.push(age);
    age += pause;
  }
  return ages.map((days, index) => trainingOf(ages.length - index, days + ((index * 5) % 7) / 24, ago));
}

const segmentTypes = ['repetition', 'endurance', 'freeform', 'bounce'] as const;

/** The training with this number, some days ago. Its figures vary with the number and improve over the year. */
function trainingOf(number: number, days: number, ago: Ago) {
  const createdAt = ago(days);
  const segments = segmentTypes.map((type, order) => {
    const grade = Math.round(62 - days / 18 + ((number * 7 + order * 13) % 30));
    return {
      type,
      order,
      createdAt,
      passed: type === 'freeform' ? null : grade >= 60,
      percentGrade: grade,
      points: grade * 2,
      durationMeasured: 50 + ((number + order) % 20),
      durationTarget: 60,
      repsMeasured: 18 + ((number * 3 + order) % 9),
      repsTarget: 20,
      speedMeasured: 1.1 + (number % 5) / 10,
      speedTarget: 1.2,
      targetDepth: 50,
      targetWindow: 10,
      longestDeepthroat: 1_500 + number * 40,
      strokeLength: 62.5,
      distanceTravelled: 3.75 + order,
    };
  });
  const [first, second] = trainers;
  const usesSecond = number % 2 === 0 && days >= second.until && days < second.since;
  // One training in five has no template. The first template replaces one that did not exist yet.
  const wanted = number % 5 === 4 ? undefined : number % 5;
  const isThere = wanted !== undefined && days < (templatesSince[wanted] ?? 0);
  return {
    bubbleId: `session-demo-${number}`,
    createdAt,
    name: number % 3 === 0 ? `Session ${number}` : null,
    passed: number % 11 === 0 ? null : segments.every(({ passed }) => passed !== false),
    trainer: trainers.indexOf(usesSecond ? second : first),
    template: wanted === undefined || isThere ? wanted : 0,
    segments,
  };
}

/** Lock sessions of each state: the active one, the ended ones, the last of them first, and one that was never started. */
function lockSessionsOf({ weekend, evening, ago }: { weekend: number; evening: number; ago: Ago }) {
  const sessions = [
    { lockState: 'locked', days: 1, templateId: weekend, hours: [0, 12, 12.2] },
    { lockState: 'completed', days: 23, templateId: weekend, hours: [0, 12, 12.2, 48] },
    { lockState: 'abandoned', days: 61, templateId: evening, hours: [0, 1, 1.2, 1.5] },
    { lockState: 'break', days: 140, templateId: weekend, hours: [0, 30] },
    { lockState: 'completed', days: 352, templateId: null, hours: [0, 12, 12.2, 48] },
    { lockState: 'pending', days: 4, templateId: weekend, hours: [] },
  ];
  return sessions.map(({ lockState, days, templateId, hours }, index) => {
    const times = hours.map((each) => ago(days - each / 24));
    const startDate = ago(days);
    const events = times.length === 0 ? [{ type: 'created', createdAt: startDate, isLocked: false }] : [];
    return {
      bubbleId: `lock-demo-${index + 1}`,
      publicId: `LOCK${index + 1}`,
      templateId,
      name: templateId === evening ? 'Evening' : 'Weekend Lock',
      lockState,
      duration: templateId === evening ? 14_400 : 172_800,
      startDate,
      createdAt: startDate,
      // The end of the active session follows from its duration. The session that is still in its break has no end.
      endDate: times[3] ?? null,
      isActive: lockState === 'locked',
      segments: [
        ...events,
        ...times.map((createdAt, place) => ({
          type: ['start', 'break', 'lock', 'end'][place] ?? '',
          createdAt,
          isLocked: place % 2 === 0,
        })),
      ],
    };
  });
}
