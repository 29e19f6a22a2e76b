/** The kinds of records that an account has upstream, each with the schemas of its records. */

import { z } from 'zod';
import {
  amount,
  count,
  duration,
  firstIssue,
  instant,
  int,
  macAddress,
  name,
  number,
  percent,
  recordId,
  segments,
  text,
  withTitle,
} from './fields.ts';
import { pendingRecord, segmentSummary } from './pending.ts';
import type { Kind, MirrorRecord, Row } from './rows.ts';

const device = (fields: Readonly<Record<string, z.ZodType<Row[string]>>>) =>
  z
    .object({
      id: recordId,
      bubbleId: name,
      ownerId: recordId,
      macAddress,
      lastVisited: instant.nullish(),
      ...fields,
    })
    .transform((row) => ({ row }));

const templateSummary = z.object({
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
  targetDepth: number,
  targetWindow: number,
  // The format of toy identifiers is not documented.
  toyId: text.nullish(),
  createdDate: instant,
  updatedAt: instant,
});

const template = templateSummary.extend({
  Segment: segments(
    z.object({
      id: recordId,
      type: name,
      duration,
      repeat: count.transform((times) => times ?? null),
    }),
  ),
});

const trainerSegment = z.object({
  id: recordId,
  type: name,
  passed: z.boolean().nullish(),
  percentGrade: percent,
  points: int.nullish(),
  durationMeasured: count,
  durationTarget: count,
  repsMeasured: count,
  repsTarget: count,
  speedMeasured: number.nullish(),
  speedTarget: number.nullish(),
  targetDepth: number.nullish(),
  targetWindow: number.nullish(),
  longestDeepthroat: amount,
  strokeLength: number.nullish(),
  distanceTravelled: amount,
  order: int.nullish(),
  createdAt: instant.nullish(),
});

/**
 * Gives each segment its place: by the field `order` or, if a segment has none, two have the same, or one is below 0, by the order
 * of the response.
 */
function inOrder<Segment extends { order?: number | null | undefined }>(given: readonly Segment[]) {
  const said = given.flatMap(({ order }) => order ?? []);
  const isSaid = new Set(said).size === given.length && said.every((order) => order >= 0);
  return given.map((segment, place) => ({ ...segment, order: isSaid ? (segment.order ?? place) : place }));
}

/** The schema of a session. It names no owner. */
function session<S extends z.ZodType<{ id: number }>>(segment: S) {
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
        name: record.name ?? null,
        passed: record.passed ?? null,
        createdAt: record.created_at,
        // The writer links them to the rows that exist.
        trainerId: null,
        goneTrainerId: record.trainer_id,
        templateId: null,
        goneTemplateId: record.settings_id ?? null,
      },
    }));
}

/** Every kind of record. Only those with a summary do not prove that the account owns them. */
export const kinds = {
  dttDevices: {
    name: 'DTT devices',
    table: 'DttDevice',
    list: '/dtt',
    record: device({
      serialNumber: text.nullish(),
      softwareVersion: text.nullish(),
      lastLogAt: instant.nullish(),
      createdDate: instant.nullish(),
      apiHits: count,
    }),
  },
  dttTemplates: {
    name: 'DTT templates',
    table: 'DttTemplate',
    children: { table: 'DttTemplateSegment', parent: 'templateId' },
    list: '/dtt/templates',
    summary: templateSummary.transform(({ isActive, ...row }) => ({
      ...pendingRecord({ row: withTitle('template', row) }),
      isActive,
    })),
    record: template.transform(({ isActive, Segment, ...row }) => ({
      row: { ...withTitle('template', row), detailsPending: false },
      children: Segment.map((segment, position) => ({ ...segment, position, templateId: row.id })),
      isActive,
    })),
  },
  dttSessions: {
    name: 'DTT sessions',
    table: 'DttSession',
    children: { table: 'TrainerSegment', parent: 'sessionId' },
    list: '/dtt/sessions',
    summary: session(trainerSegment.pick(segmentSummary)).transform(({ row, segments }) => {
      const children = segments.map((segment) => ({ ...segment, sessionId: row.id }));
      return pendingRecord({ row, children });
    }),
    record: session(trainerSegment).transform(({ row, segments }) => {
      const children = inOrder(segments).map((segment) => ({
        ...segment,
        sessionId: row.id,
        createdAt: segment.createdAt ?? null,
      }));
      return { row: { ...row, detailsPending: false }, children };
    }),
  },
  lkbxDevices: {
    name: 'LKBX devices',
    table: 'LkbxDevice',
    list: '/lkbx',
    isOptional: true,
    record: device({ locked: z.boolean(), hueShift: number, lastLogAt: instant.nullish() }),
  },
  lockTemplates: {
    name: 'lock templates',
    table: 'LockTemplate',
    list: '/lkbx/templates',
    isOptional: true,
    record: z
      .object({
        id: recordId,
        ownerId: recordId,
        name: text,
        duration,
        isRandomDuration: z.boolean(),
        isBreakEnabled: z.boolean(),
        breakRegularity: count,
        isEmergencyUnlockEnabled: z.boolean(),
        createdAt: instant,
      })
      .transform((row) => ({ row: withTitle('lock template', row) })),
  },
  lockSessions: {
    name: 'lock sessions',
    table: 'LockSession',
    children: { table: 'LockSegment', parent: 'sessionId' },
    list: '/lkbx/sessions',
    isOptional: true,
    record: z
      .object({
        id: recordId,
        bubbleId: name,
        publicId: name,
        ownerId: recordId,
        name: text.nullish(),
        lockState: name,
        duration,
        startDate: instant,
        endDate: instant.nullish(),
        createdAt: instant.nullish(),
        isActive: z.boolean(),
        LockSegment: segments(
          z.object({ id: recordId, type: name, createdAt: instant, isLocked: z.boolean() }),
        ),
      })
      .transform(({ LockSegment, ...row }) => {
        const isOver = ['completed', 'abandoned'].includes(row.lockState);
        return {
          row: { ...row, isActive: row.isActive && !isOver },
          children: LockSegment.map((segment) => ({ ...segment, sessionId: row.id })),
        };
      }),
  },
  ossmDevices: {
    name: 'OSSM devices',
    table: 'OssmDevice',
    list: '/ossm',
    isOptional: true,
    record: device({
      chip: name,
      pairingCode: text.nullish(),
      pairingExpires: instant.nullish(),
      OSSMFirmwareId: int.nullish(),
    }),
  },
} satisfies Readonly<Record<string, Kind>>;

/**
 * Reads a record of an account, or says what is wrong with it. The account must own it, but for a template: one that is imported has
 * no owner here, only the number of its owner upstream.
 */
export function parseRecord(
  schema: z.ZodType<MirrorRecord>,
  { table }: Pick<Kind, 'table'>,
  given: unknown,
  accountId: number,
): MirrorRecord | string {
  const { data: record, error } = schema.safeParse(given);
  if (!record) return firstIssue(error);
  const owned = (owner: Partial<Row>) => ({ ...record, row: { ...record.row, ...owner } });
  const { ownerId } = record.row;
  if (table === 'DttSession') return owned({ ownerId: accountId });
  if (table === 'DttTemplate')
    return owned(
      ownerId === accountId ? { foreignOwnerId: null } : { ownerId: null, foreignOwnerId: ownerId },
    );
  return ownerId === accountId ? record : `ownerId: is not the account's, which is ${accountId}`;
}
