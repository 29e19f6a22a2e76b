/**
 * The records of the REST interface as an upstream gives them: checked field by field, and turned into rows of the
 * mirror. What a response leaves out is left out of the row as well, so that the mirror's value stays.
 */

import { z } from 'zod';
import { TrainerSegmentType as trainerSegmentTypes } from '../database/generated/prisma/enums.ts';
import { instant, int, known, name, recordId, segments, text } from './fields.ts';

export type Row = { id: number } & Record<string, string | number | boolean | null | undefined>;

/** A record as the mirror stores it. */
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
  /** Where the rows that belong to its records go, and the column that says to which one. */
  readonly children?: { readonly table: string; readonly parent: string };
  /** Path of the list. */
  readonly list: string;
  /** Whether the list is documented, so that every upstream has it. */
  readonly documented: boolean;
  /** Path of one record, without its id. */
  readonly item: string;
  /** How a record reads in a list that leaves out fields, which only the record by id has. */
  readonly summary?: z.ZodType<MirrorRecord>;
  /** How a record reads by its id, and in a list that leaves out nothing. */
  readonly record: z.ZodType<MirrorRecord>;
}

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
  // What an identifier of a toy looks like is documented nowhere.
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

/** The field that says whose a record is: nothing but the account's id. */
type OwnerId = z.ZodLiteral<number>;

const dttDevices = (ownerId: OwnerId): Kind => ({
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
});

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

const lkbxDevices = (ownerId: OwnerId): Kind => ({
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
});

const lockTemplates = (ownerId: OwnerId): Kind => ({
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
});

const lockSessions = (ownerId: OwnerId): Kind => ({
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
});

const ossmDevices = (ownerId: OwnerId): Kind => ({
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
});

const dttSessions = (accountId: number): Kind => ({
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
});

/**
 * Every kind of record, in an order in which what is referred to comes first, and what takes longest last.
 * @param accountId the user to whom all but imported templates must belong.
 */
export function kindsOf(accountId: number) {
  const ownerId = z.literal(accountId, { error: `is not the account's, which is ${accountId}` });
  return {
    dttDevices: dttDevices(ownerId),
    dttTemplates,
    lkbxDevices: lkbxDevices(ownerId),
    lockTemplates: lockTemplates(ownerId),
    lockSessions: lockSessions(ownerId),
    ossmDevices: ossmDevices(ownerId),
    dttSessions: dttSessions(accountId),
  };
}
