/** The kinds of records that an account has upstream, each with the schemas of its records. */

import { z } from 'zod';
import {
  amount,
  count,
  duration,
  instant,
  int,
  macAddress,
  name,
  number,
  numeric,
  percent,
  recordId,
  segments,
  text,
  withTitle,
} from './fields.ts';
import { pendingRecord, segmentSummary } from './pending.ts';
import type { Kind, Row } from './rows.ts';

/** The owner of a record: only the id of the account is valid. */
type OwnerId = z.ZodType<number>;

const device = (ownerId: OwnerId, fields: Readonly<Record<string, z.ZodType<Row[string]>>>) =>
  z
    .object({ id: recordId, bubbleId: name, ownerId, macAddress, lastVisited: instant.nullish(), ...fields })
    .transform((row) => ({ row }));

const dttDevices = (ownerId: OwnerId): Kind => ({
  name: 'DTT devices',
  table: 'DttDevice',
  list: '/dtt',
  record: device(ownerId, {
    serialNumber: text.nullish(),
    softwareVersion: text.nullish(),
    lastLogAt: instant.nullish(),
    createdDate: instant.nullish(),
    apiHits: count,
  }),
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
  targetDepth: number,
  targetWindow: number,
  // The format of toy identifiers is not documented.
  toyId: text.nullish(),
  createdDate: instant,
  updatedAt: instant,
};

type TemplateFields = Omit<z.output<z.ZodObject<typeof templateFields>>, 'isActive'>;

/** An imported template has no owner here, only the number of its owner upstream. */
const templateRow = ({ ownerId, ...row }: TemplateFields, accountId: number) => ({
  ...withTitle('template', row),
  ...(ownerId === accountId ? { ownerId, foreignOwnerId: null } : { ownerId: null, foreignOwnerId: ownerId }),
});

const templateSummary = (accountId: number) =>
  z.object(templateFields).transform(({ isActive, ...row }) => ({
    ...pendingRecord({ row: templateRow(row, accountId) }),
    isActive,
  }));

const template = (accountId: number) =>
  z
    .object({
      ...templateFields,
      Segment: segments(
        z.object({
          id: recordId,
          type: name,
          duration,
          repeat: count.transform((times) => times ?? null),
        }),
      ),
    })
    .transform(({ isActive, Segment, ...row }) => ({
      row: { ...templateRow(row, accountId), detailsPending: false },
      children: Segment.map((segment, position) => ({ ...segment, position, templateId: row.id })),
      isActive,
    }));

const dttTemplates = (accountId: number): Kind => ({
  name: 'DTT templates',
  table: 'DttTemplate',
  children: { table: 'DttTemplateSegment', parent: 'templateId' },
  list: '/dtt/templates',
  summary: templateSummary(accountId),
  record: template(accountId),
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

/** The schema of a session. @param ownerId the account, which a session does not name. */
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
        // The writer links them to the rows that exist.
        trainerId: null,
        goneTrainerId: record.trainer_id,
        templateId: null,
        goneTemplateId: record.settings_id ?? null,
      },
    }));
}

const dttSessions = (accountId: number): Kind => ({
  name: 'DTT sessions',
  table: 'DttSession',
  children: { table: 'TrainerSegment', parent: 'sessionId' },
  list: '/dtt/sessions',
  summary: session(accountId, trainerSegment.pick(segmentSummary)).transform(({ row, segments }) => {
    const children = segments.map((segment) => ({ ...segment, sessionId: row.id }));
    return pendingRecord({ row, children });
  }),
  record: session(accountId, trainerSegment).transform(({ row, segments }) => {
    const children = inOrder(segments).map((segment) => ({
      ...segment,
      sessionId: row.id,
      createdAt: segment.createdAt ?? null,
    }));
    return { row: { ...row, detailsPending: false }, children };
  }),
});

const lkbxDevices = (ownerId: OwnerId): Kind => ({
  name: 'LKBX devices',
  table: 'LkbxDevice',
  list: '/lkbx',
  isOptional: true,
  record: device(ownerId, { locked: z.boolean(), hueShift: number, lastLogAt: instant.nullish() }),
});

const lockTemplates = (ownerId: OwnerId): Kind => ({
  name: 'lock templates',
  table: 'LockTemplate',
  list: '/lkbx/templates',
  isOptional: true,
  record: z
    .object({
      id: recordId,
      ownerId,
      name: text,
      duration,
      isRandomDuration: z.boolean(),
      isBreakEnabled: z.boolean(),
      breakRegularity: count,
      isEmergencyUnlockEnabled: z.boolean(),
      createdAt: instant,
    })
    .transform((row) => ({ row: withTitle('lock template', row) })),
});

const lockSessions = (ownerId: OwnerId): Kind => ({
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
      ownerId,
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
});

const ossmDevices = (ownerId: OwnerId): Kind => ({
  name: 'OSSM devices',
  table: 'OssmDevice',
  list: '/ossm',
  isOptional: true,
  record: device(ownerId, {
    chip: name,
    pairingCode: text.nullish(),
    pairingExpires: instant.nullish(),
    OSSMFirmwareId: int.nullish(),
  }),
});

/** Every kind of record. @param accountId the user to whom all but imported templates must belong. */
export function kindsOf(accountId: number) {
  const ownerId = numeric(z.literal(accountId, { error: `is not the account's, which is ${accountId}` }));
  return {
    dttDevices: dttDevices(ownerId),
    dttTemplates: dttTemplates(accountId),
    lkbxDevices: lkbxDevices(ownerId),
    lockTemplates: lockTemplates(ownerId),
    lockSessions: lockSessions(ownerId),
    ossmDevices: ossmDevices(ownerId),
    dttSessions: dttSessions(accountId),
  };
}
