/** What the demo account has: devices, programs and months of history. */

import type { Prisma } from '../database/generated/prisma/client.ts';

export const demoUsername = 'demo';

const day = 24 * 60 * 60 * 1000;
const now = new Date('2026-02-17T12:00:00Z');
const ago = (days: number) => new Date(now.getTime() - days * day);

/** Writes all of it, with one statement for all rows of a kind: one for each row would take seconds. */
export async function loadDemoData(database: Prisma.TransactionClient): Promise<void> {
  const demo = await database.user.create({
    data: {
      username: demoUsername,
      subscriptionTier: 'ultra',
      league: 3,
      rank: 150,
      totalPoints: 12_500,
      matchPoints: 800,
      profileImage: 'https://example.com/demo.jpg',
      profileTitle: 'Explorer',
      profileDescription: 'The account that comes with Dovetail.',
      dttTotalReps: 4_210,
      dttTotalSessions: 60,
    },
  });
  const coach = await database.user.create({ data: { username: 'coach', profileTitle: 'Coach' } });
  const trainerIds = await loadTrainers(database, demo.id);
  const templateIds = await loadTemplates(database, demo.id, coach.id);
  await loadTrainingSessions(database, demo.id, trainerIds, templateIds);
  await loadLocks(database, demo.id);
  await database.ossmDevice.create({
    data: {
      bubbleId: 'ossm-demo-1',
      macAddress: '02:00:00:00:02:01',
      chip: 'ESP32-S3',
      ownerId: demo.id,
      lastVisited: ago(3),
      OSSMFirmwareId: 5,
    },
  });
}

async function loadTrainers(database: Prisma.TransactionClient, ownerId: number): Promise<number[]> {
  const trainers = await database.dttDevice.createManyAndReturn({
    data: [
      {
        bubbleId: 'dtt-demo-1',
        ownerId,
        macAddress: '02:00:00:00:00:01',
        serialNumber: '1001',
        softwareVersion: '2.1.0',
        lastVisited: ago(0),
        lastLogAt: ago(0.1),
        createdDate: ago(400),
        apiHits: 256,
      },
      {
        bubbleId: 'dtt-demo-2',
        ownerId,
        macAddress: '02:00:00:00:00:02',
        serialNumber: '1002',
        softwareVersion: '2.0.3',
        lastVisited: ago(12),
        lastLogAt: ago(12),
        createdDate: ago(90),
        apiHits: 31,
      },
      { bubbleId: 'dtt-demo-3', ownerId, macAddress: '02:00:00:00:00:03', createdDate: ago(1) },
    ],
    select: { id: true },
  });
  return trainers.map(({ id }) => id);
}

/** The first is the active one, and the last imported from the coach. */
async function loadTemplates(
  database: Prisma.TransactionClient,
  ownerId: number,
  coachId: number,
): Promise<number[]> {
  const programs = templatesOf(ownerId, coachId);
  const templates = await database.dttTemplate.createManyAndReturn({
    data: programs.map(({ segments, ...template }) => template),
    select: { id: true },
  });
  await database.dttTemplateSegment.createMany({
    data: templates.flatMap(
      ({ id }, index) =>
        programs[index]?.segments.map((segment, position) => ({ ...segment, templateId: id, position })) ??
        [],
    ),
  });
  const [beginner, , , imported] = templates;
  if (beginner)
    await database.user.update({ where: { id: ownerId }, data: { activeTemplateId: beginner.id } });
  if (imported) await database.dttLibraryEntry.create({ data: { userId: ownerId, templateId: imported.id } });
  return templates.map(({ id }) => id);
}

async function loadTrainingSessions(
  database: Prisma.TransactionClient,
  ownerId: number,
  trainerIds: readonly number[],
  templateIds: readonly number[],
): Promise<void> {
  const trainings = Array.from({ length: 60 }, (_, index) =>
    sessionOf(index, ownerId, trainerIds[index % 2] ?? 0, templateIds[index % 5] ?? null),
  );
  const sessions = await database.dttSession.createManyAndReturn({
    data: trainings.map(({ segments, ...session }) => session),
    select: { id: true },
  });
  await database.trainerSegment.createMany({
    data: sessions.flatMap(
      ({ id }, index) => trainings[index]?.segments.map((segment) => ({ ...segment, sessionId: id })) ?? [],
    ),
  });
}

async function loadLocks(database: Prisma.TransactionClient, ownerId: number): Promise<void> {
  await database.lkbxDevice.create({
    data: {
      bubbleId: 'lkbx-demo-1',
      macAddress: '02:00:00:00:01:01',
      ownerId,
      locked: true,
      hueShift: 120,
      lastVisited: ago(0.2),
      lastLogAt: ago(0.2),
    },
  });
  const weekend = await database.lockTemplate.create({
    data: {
      ownerId,
      name: 'Weekend Lock',
      duration: 172_800,
      isBreakEnabled: true,
      breakRegularity: 3_600,
      isEmergencyUnlockEnabled: true,
      createdAt: ago(80),
    },
  });
  await database.lockTemplate.create({
    data: { ownerId, name: 'Evening', duration: 14_400, isRandomDuration: true, createdAt: ago(40) },
  });
  const lockings = Array.from({ length: 6 }, (_, index) => lockSessionOf(index, ownerId, weekend.id));
  const lockSessions = await database.lockSession.createManyAndReturn({
    data: lockings.map(({ segments, ...session }) => session),
    select: { id: true },
  });
  await database.lockSegment.createMany({
    data: lockSessions.flatMap(
      ({ id }, index) => lockings[index]?.segments.map((segment) => ({ ...segment, sessionId: id })) ?? [],
    ),
  });
}

/** Three templates of the demo user and, last, one of the coach. */
function templatesOf(ownerId: number, coachId: number) {
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
      createdDate: ago(260),
      updatedAt: ago(16),
      segments: [warmup, { type: 'training', duration: 300, repeat: 3 }],
    },
    {
      bubbleId: 'prog-demo-2',
      ownerId,
      name: 'Endurance',
      tagline: 'Slow and long',
      targetDepth: 70,
      targetWindow: 15,
      handsFreeMode: true,
      createdDate: ago(120),
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
      targetDepth: 60,
      targetWindow: 12.5,
      createdDate: ago(30),
      updatedAt: ago(30),
      segments: [{ type: 'training', duration: 45, repeat: 8 }],
    },
    {
      bubbleId: 'prog-demo-4',
      ownerId: coachId,
      name: 'Coach’s Pick',
      description: 'Imported from the coach',
      isPublic: true,
      targetDepth: 80,
      targetWindow: 10,
      createdDate: ago(200),
      updatedAt: ago(150),
      segments: [warmup, { type: 'training', duration: 240, repeat: 5 }],
    },
  ];
}

const segmentTypes = ['repetition', 'endurance', 'freeform', 'bounce'] as const;

/** The session of the given age in half days, with figures that vary with it. */
function sessionOf(index: number, ownerId: number, trainerId: number, templateId: number | null) {
  const createdAt = ago(index / 2);
  const segments = segmentTypes.map((type, order) => {
    const grade = 55 + ((index * 7 + order * 13) % 45);
    return {
      type,
      order,
      createdAt,
      passed: type === 'freeform' ? null : grade >= 65,
      percentGrade: grade,
      points: grade * 2,
      durationMeasured: 50 + ((index + order) % 20),
      durationTarget: 60,
      repsMeasured: 18 + ((index * 3 + order) % 9),
      repsTarget: 20,
      speedMeasured: 1.1 + (index % 5) / 10,
      speedTarget: 1.2,
      targetDepth: 50,
      targetWindow: 10,
      longestDeepthroat: 1_500 + index * 40,
      strokeLength: 62.5,
      distanceTravelled: 3.75 + order,
    };
  });
  return {
    bubbleId: `session-demo-${index + 1}`,
    ownerId,
    trainerId,
    templateId,
    createdAt,
    name: index % 3 === 0 ? `Session ${60 - index}` : null,
    passed: index % 11 === 0 ? null : segments.every(({ passed }) => passed !== false),
    segments,
  };
}

/** The lock session of the given age in fortnights: the newest is under way, the others are over. */
function lockSessionOf(index: number, ownerId: number, templateId: number) {
  const startDate = ago(1 + index * 14);
  const isActive = index === 0;
  const end = { type: 'end', createdAt: new Date(startDate.getTime() + 2 * day), isLocked: false };
  return {
    bubbleId: `lock-demo-${index + 1}`,
    publicId: `LOCK${index + 1}`,
    ownerId,
    templateId: index < 4 ? templateId : null,
    name: 'Weekend Lock',
    lockState: isActive ? 'locked' : index === 3 ? 'abandoned' : 'completed',
    duration: 172_800,
    startDate,
    createdAt: startDate,
    // When the active one ends follows from its duration.
    endDate: isActive ? null : end.createdAt,
    isActive,
    segments: [
      { type: 'start', createdAt: startDate, isLocked: true },
      { type: 'break', createdAt: new Date(startDate.getTime() + day / 2), isLocked: false },
      { type: 'lock', createdAt: new Date(startDate.getTime() + day / 2 + 600_000), isLocked: true },
      ...(isActive ? [] : [end]),
    ],
  };
}
