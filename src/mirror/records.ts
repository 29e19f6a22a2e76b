/**
 * The records of the REST interface as an upstream gives them: checked field by field, and turned into rows of the
 * mirror. What a response leaves out is left out of the row as well, so that the mirror's value stays.
 */

import { z } from 'zod';
import { segmentSummary } from '../schema/loading/details.ts';
import {
  amount,
  count,
  duration,
  type InvalidValue,
  instant,
  int,
  macAddress,
  name,
  number,
  numeric,
  percent,
  recordId,
  replaceInvalid,
  segments,
  text,
  titleOf,
} from './fields.ts';

type Value = string | number | boolean | null | undefined;
export type Row = { id: number } & Record<string, Value>;

/** A record as the mirror stores it. */
export interface MirrorRecord {
  readonly row: Row;
  /** The rows that belong to it, such as the segments of a session. */
  readonly children?: readonly Row[];
  /** Only templates: whether it is the account's active one. */
  readonly isActive?: boolean;
  /** What the mirror has otherwise than the upstream, since it made no sense. */
  readonly notes: readonly string[];
}

/** A row as it was read, in which there may be values that make no sense. */
type ReadRow = { id: number } & Record<string, Value | InvalidValue>;

/**
 * @param part what the upstream calls the rows that belong to the record.
 * @param notes what was found already.
 */
function toRecord(
  read: ReadRow,
  children?: readonly ReadRow[],
  part = '',
  notes: readonly string[] = [],
): MirrorRecord {
  const whole = replaceInvalid(read);
  if (!children) return { row: whole.row, notes: [...notes, ...whole.notes] };
  const parts = children.map((child) => replaceInvalid(child, `${part} ${child.id}, `));
  return {
    row: whole.row,
    children: parts.map(({ row }) => row),
    notes: [...notes, ...whole.notes, ...parts.flatMap((each) => each.notes)],
  };
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
  /** Columns that are null, rather than what they are by default, as long as the upstream has not told them. */
  readonly nullUntilKnown?: readonly string[];
  /** Path of the list. */
  readonly list: string;
  /** Whether the list is documented, so that every upstream has it. */
  readonly documented: boolean;
  /** Path of one record, without its id. */
  readonly item: string;
  /** How a record reads in a list that leaves out fields, which only the record by id has. */
  readonly summary?: z.ZodType<MirrorRecord>;
  /** How a record reads in a list that leaves out whatever it likes: enough to tell whether it has changed. */
  readonly partialRecord?: z.ZodType<MirrorRecord>;
  /** How a record reads by its id, and in a list that leaves out nothing. */
  readonly record: z.ZodType<MirrorRecord>;
}

const templateFields = {
  id: recordId,
  bubbleId: name,
  ownerId: recordId,
  name: titleOf('template'),
  description: text.nullish(),
  tagline: text.nullish(),
  message: text.nullish(),
  isPublic: z.boolean(),
  isActive: z.boolean(),
  handsFreeMode: z.boolean(),
  targetDepth: number,
  targetWindow: number,
  // What an identifier of a toy looks like is documented nowhere.
  toyId: text.nullish(),
  createdDate: instant,
  updatedAt: instant,
};

type TemplateFields = Omit<z.output<z.ZodObject<typeof templateFields>>, 'isActive'>;

/** The owner of an imported template is nobody who is here. */
const templateRow = ({ ownerId, ...row }: TemplateFields, accountId: number) =>
  ownerId === accountId
    ? { ...row, ownerId, foreignOwnerId: null }
    : { ...row, ownerId: null, foreignOwnerId: ownerId };

const templateSummary = (accountId: number) =>
  z
    .object(templateFields)
    .transform(({ isActive, ...row }) => ({ ...toRecord(templateRow(row, accountId)), isActive }));

const template = (accountId: number) =>
  z
    .object({
      ...templateFields,
      Segment: segments(
        z.object({
          id: recordId,
          type: name,
          duration: duration,
          repeat: count.transform((times) => times ?? null),
        }),
      ),
    })
    .transform(({ isActive, Segment, ...row }) => ({
      ...toRecord(
        { ...templateRow(row, accountId), detailsPending: false },
        Segment.map((segment, position) => ({ ...segment, position, templateId: row.id })),
        'Segment',
      ),
      isActive,
    }));

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
 * The segments in their order: that which they say, or in which they come, if one of them says none. It is also that in
 * which they come if two say the same, or one a place that there is not.
 */
function inOrder<Segment extends { order?: number | null | undefined }>(given: readonly Segment[]) {
  const said = given.flatMap(({ order }) => order ?? []);
  const isSensible = new Set(said).size === said.length && said.every((order) => order >= 0);
  const isSaid = isSensible && said.length === given.length;
  return {
    ordered: given.map((segment, place) => ({
      ...segment,
      order: isSaid ? (segment.order ?? place) : place,
    })),
    notes: isSensible
      ? []
      : ['order: is below 0, or that of two segments; they are here in the order in which they come.'],
  };
}

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
type OwnerId = z.ZodType<number>;

const dttDevices = (ownerId: OwnerId): Kind => ({
  name: 'DTT devices',
  table: 'DttDevice',
  nullUntilKnown: ['createdDate', 'apiHits'],
  list: '/dtt',
  documented: true,
  item: '/dtt/',
  record: z
    .object({
      id: recordId,
      bubbleId: name,
      ownerId,
      macAddress,
      serialNumber: text.nullish(),
      softwareVersion: text.nullish(),
      lastVisited: instant.nullish(),
      lastLogAt: instant.nullish(),
      createdDate: instant.nullish(),
      apiHits: count,
    })
    .transform((row) => toRecord(row)),
});

const dttTemplates = (accountId: number): Kind => ({
  name: 'DTT templates',
  table: 'DttTemplate',
  children: { table: 'DttTemplateSegment', parent: 'templateId' },
  list: '/dtt/templates',
  documented: true,
  item: '/dtt/templates/',
  summary: templateSummary(accountId),
  record: template(accountId),
});

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
      macAddress,
      ownerId,
      locked: z.boolean(),
      hueShift: number,
      lastVisited: instant.nullish(),
      lastLogAt: instant.nullish(),
    })
    .transform((row) => toRecord(row)),
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
      name: titleOf('lock template'),
      duration: duration,
      isRandomDuration: z.boolean(),
      isBreakEnabled: z.boolean(),
      breakRegularity: count,
      isEmergencyUnlockEnabled: z.boolean(),
      createdAt: instant,
    })
    .transform((row) => toRecord(row)),
});

/** What changes of a lock session. */
const lockSessionFields = {
  id: recordId,
  name: text.nullish(),
  lockState: name,
  duration: duration,
  startDate: instant,
  endDate: instant.nullish(),
  isActive: z.boolean(),
};

const lockSessions = (ownerId: OwnerId): Kind => ({
  name: 'lock sessions',
  table: 'LockSession',
  nullUntilKnown: ['createdAt'],
  children: { table: 'LockSegment', parent: 'sessionId' },
  list: '/lkbx/sessions',
  documented: false,
  item: '/lkbx/sessions/',
  partialRecord: z
    .object(lockSessionFields)
    .partial()
    .required({ id: true })
    .transform((row) => toRecord(row)),
  record: z
    .object({
      ...lockSessionFields,
      bubbleId: name,
      publicId: name,
      ownerId,
      createdAt: instant.nullish(),
      LockSegment: segments(
        z.object({ id: recordId, type: name, createdAt: instant, isLocked: z.boolean() }),
      ),
    })
    .transform(({ LockSegment, ...row }) => {
      const isOver = row.isActive && ['completed', 'abandoned'].includes(row.lockState);
      return toRecord(
        { ...row, isActive: row.isActive && !isOver },
        LockSegment.map((segment) => ({ ...segment, sessionId: row.id })),
        'LockSegment',
        isOver ? [`isActive: is true of a session that is ${row.lockState}; false here.`] : [],
      );
    }),
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
      macAddress,
      chip: name,
      ownerId,
      pairingCode: text.nullish(),
      pairingExpires: instant.nullish(),
      lastVisited: instant.nullish(),
      OSSMFirmwareId: int.nullish(),
    })
    .transform((row) => toRecord(row)),
});

const dttSessions = (accountId: number): Kind => ({
  name: 'DTT sessions',
  table: 'DttSession',
  children: { table: 'TrainerSegment', parent: 'sessionId' },
  list: '/dtt/sessions',
  documented: true,
  item: '/dtt/sessions/',
  summary: session(accountId, trainerSegment.pick(segmentSummary)).transform(({ row, segments }) =>
    toRecord(
      row,
      segments.map((segment) => ({ ...segment, sessionId: row.id })),
      'TrainerSegment',
    ),
  ),
  record: session(accountId, trainerSegment).transform(({ row, segments }) => {
    const { ordered, notes } = inOrder(segments);
    const children = ordered.map((segment) => ({
      ...segment,
      sessionId: row.id,
      createdAt: segment.createdAt ?? null,
    }));
    return toRecord({ ...row, detailsPending: false }, children, 'TrainerSegment', notes);
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
