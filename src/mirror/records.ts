/**
 * The records of the interface as an upstream gives them: checked field by field, and turned into the rows
 * that the mirror keeps. What a response leaves out is left out of the row, which keeps its value there.
 */

import { z } from 'zod';
import { TrainerSegmentType as trainerSegmentTypes } from '../database/generated/prisma/enums.ts';

export type Row = { id: number } & Record<string, string | number | boolean | null | undefined>;

/** A record as the mirror keeps it. */
export interface MirrorRecord {
  readonly row: Row;
  /** The rows that belong to it, such as the segments of a session. */
  readonly children?: readonly Row[];
  /** Only templates: whether it is the account's active one. */
  readonly isActive?: boolean;
}

/** A kind of records: where the upstream has them, how they read, and where they go. */
export interface Kind {
  /** What reports call it. */
  readonly name: string;
  readonly table:
    | 'DttDevice'
    | 'DttTemplate'
    | 'DttSession'
    | 'LkbxDevice'
    | 'LockTemplate'
    | 'LockSession'
    | 'OssmDevice';
  readonly children?: { readonly table: string; readonly parent: string };
  readonly list: string;
  /** Whether the interface documents the list, so that every upstream has it. */
  readonly documented: boolean;
  /** Path of one record, without its id. */
  readonly item: string;
  /** How the list says it, where the list leaves out what only the record by id has. */
  readonly summary?: z.ZodType<MirrorRecord>;
  readonly record: z.ZodType<MirrorRecord>;
}

const int = z.int32();
export const recordId = int.min(1);
/** Text that PostgreSQL can keep: without NUL, and without halves of surrogate pairs. */
const text = z
  .string()
  .max(10_000)
  .regex(/^[^\0\p{Surrogate}]*$/u, 'has characters that cannot be stored');
/** Text that is indexed, or as good as a name. */
const name = text.max(255);
/** An instant whose year has four digits in UTC too, which an offset can change. */
const instant = z.iso
  .datetime({ offset: true })
  .refine((value) => {
    const year = new Date(value).getUTCFullYear();
    return year >= 1000 && year <= 9999;
  }, 'is not between the years 1000 and 9999')
  .transform((value) => new Date(value).toISOString());
const segments = <S extends z.ZodType>(segment: S) => z.array(segment).max(1000);
/** A value that the mirror has always, so that null counts as left out. */
const known = <S extends z.ZodType>(schema: S) => schema.nullish().transform((value) => value ?? undefined);

export const user = z.object({
  id: recordId,
  username: name.min(1),
  accountType: known(name),
  subscriptionTier: known(name),
  league: known(int),
  rank: known(int),
  totalPoints: known(int),
  matchPoints: known(int),
  profileImage: text.nullish(),
  profileDescription: text.nullish(),
  profileTitle: text.nullish(),
  dttTotalReps: known(int),
  dttTotalSessions: known(int),
});

const templateFields = {
  id: recordId,
  bubbleId: name,
  ownerId: recordId,
  name: text,
  description: text.nullish(),
  tagline: text.nullish(),
  message: text.nullish(),
  isPublic: z.boolean(),
  isActive: z.boolean(),
  handsFreeMode: z.boolean(),
  targetDepth: z.number(),
  targetWindow: z.number(),
  // The interface does not show what an identifier of a toy looks like.
  toyId: z.union([text, int.transform(String)]).nullish(),
  createdDate: instant,
  updatedAt: instant,
};

const templateSummary = z.object(templateFields).transform(({ isActive, ...row }) => ({ row, isActive }));

const template = z
  .object({
    ...templateFields,
    Segment: segments(
      z.object({
        id: recordId,
        type: name,
        duration: int,
        repeat: int.nullish().transform((times) => times ?? 1),
      }),
    ),
  })
  .transform(({ isActive, Segment, ...row }) => ({
    row,
    isActive,
    children: Segment.map((segment, position) => ({ ...segment, position, templateId: row.id })),
  }));

const segmentSummaryFields = {
  id: recordId,
  type: z.enum(trainerSegmentTypes),
  passed: z.boolean().nullish(),
  percentGrade: z.number().nullish(),
  points: int.nullish(),
};

const trainerSegment = z.object({
  ...segmentSummaryFields,
  durationMeasured: int.nullish(),
  durationTarget: int.nullish(),
  repsMeasured: int.nullish(),
  repsTarget: int.nullish(),
  speedMeasured: z.number().nullish(),
  speedTarget: z.number().nullish(),
  targetDepth: z.number().nullish(),
  targetWindow: z.number().nullish(),
  longestDeepthroat: z.number().nullish(),
  strokeLength: z.number().nullish(),
  distanceTravelled: z.number().nullish(),
  order: int.nullish(),
  createdAt: instant.nullish(),
});

/** @param ownerId the account, whose sessions do not say it. */
function session<S extends z.ZodType<{ id: number }>>(ownerId: number, segment: S) {
  return z
    .object({
      id: recordId,
      bubble_id: name,
      name: text.nullish(),
      passed: z.boolean().nullish(),
      created_at: instant,
      trainer_id: recordId,
      settings_id: recordId.nullish(),
      TrainerSegment: segments(segment),
    })
    .transform((record) => ({
      segments: record.TrainerSegment,
      row: {
        id: record.id,
        bubbleId: record.bubble_id,
        ownerId,
        name: record.name ?? null,
        passed: record.passed ?? null,
        createdAt: record.created_at,
        trainerId: record.trainer_id,
        templateId: record.settings_id ?? null,
      },
    }));
}

/**
 * Every kind of record, in an order in which what is referred to comes first, and what takes longest last.
 * @param accountId the user to whom all but imported templates must belong.
 */
export function kindsOf(accountId: number) {
  const ownerId = z.literal(accountId, { error: `is not the account's, which is ${accountId}` });

  const dttDevices: Kind = {
    name: 'DTT devices',
    table: 'DttDevice',
    list: '/dtt',
    documented: true,
    item: '/dtt/',
    record: z
      .object({
        id: recordId,
        bubbleId: name,
        ownerId,
        macAddress: name,
        serialNumber: text.nullish(),
        softwareVersion: text.nullish(),
        lastVisited: instant.nullish(),
        lastLogAt: instant.nullish(),
        createdDate: known(instant),
        apiHits: known(int),
      })
      .transform((row) => ({ row })),
  };

  const dttTemplates: Kind = {
    name: 'DTT templates',
    table: 'DttTemplate',
    children: { table: 'DttTemplateSegment', parent: 'templateId' },
    list: '/dtt/templates',
    documented: true,
    item: '/dtt/templates/',
    summary: templateSummary,
    record: template,
  };

  const lkbxDevices: Kind = {
    name: 'LKBX devices',
    table: 'LkbxDevice',
    list: '/lkbx',
    documented: false,
    item: '/lkbx/',
    record: z
      .object({
        id: recordId,
        bubbleId: name,
        macAddress: name,
        ownerId,
        locked: z.boolean(),
        hueShift: z.number(),
        lastVisited: instant.nullish(),
        lastLogAt: instant.nullish(),
      })
      .transform((row) => ({ row })),
  };

  const lockTemplates: Kind = {
    name: 'lock templates',
    table: 'LockTemplate',
    list: '/lkbx/templates',
    documented: false,
    item: '/lkbx/templates/',
    record: z
      .object({
        id: recordId,
        ownerId,
        name: text,
        duration: int,
        isRandomDuration: z.boolean(),
        isBreakEnabled: z.boolean(),
        breakRegularity: int.nullish(),
        isEmergencyUnlockEnabled: z.boolean(),
        createdAt: instant,
      })
      .transform((row) => ({ row })),
  };

  const lockSessions: Kind = {
    name: 'lock sessions',
    table: 'LockSession',
    children: { table: 'LockSegment', parent: 'sessionId' },
    list: '/lkbx/sessions',
    documented: false,
    item: '/lkbx/sessions/',
    record: z
      .object({
        id: recordId,
        bubbleId: name,
        publicId: name,
        ownerId,
        name: text.nullish(),
        lockState: name,
        duration: int,
        startDate: instant,
        isActive: z.boolean(),
        LockSegment: segments(
          z.object({ id: recordId, type: name, createdAt: instant, isLocked: z.boolean() }),
        ),
      })
      .transform(({ LockSegment, ...row }) => ({
        row,
        children: LockSegment.map((segment) => ({ ...segment, sessionId: row.id })),
      })),
  };

  const ossmDevices: Kind = {
    name: 'OSSM devices',
    table: 'OssmDevice',
    list: '/ossm',
    documented: false,
    item: '/ossm/',
    record: z
      .object({
        id: recordId,
        bubbleId: name,
        macAddress: name,
        chip: name,
        ownerId,
        pairingCode: text.nullish(),
        pairingExpires: instant.nullish(),
        lastVisited: instant.nullish(),
        OSSMFirmwareId: int.nullish(),
      })
      .transform((row) => ({ row })),
  };

  const dttSessions: Kind = {
    name: 'DTT sessions',
    table: 'DttSession',
    children: { table: 'TrainerSegment', parent: 'sessionId' },
    list: '/dtt/sessions',
    documented: true,
    item: '/dtt/sessions/',
    summary: session(accountId, z.object(segmentSummaryFields)).transform(({ row, segments }) => ({
      row,
      children: segments.map((segment) => ({ ...segment, sessionId: row.id })),
    })),
    record: session(accountId, trainerSegment).transform(({ row, segments }) => ({
      row,
      children: segments.map((segment, order) => ({
        ...segment,
        sessionId: row.id,
        order: segment.order ?? order,
        createdAt: segment.createdAt ?? row.createdAt,
      })),
    })),
  };

  return { dttDevices, dttTemplates, lkbxDevices, lockTemplates, lockSessions, ossmDevices, dttSessions };
}
