/** What a service can do wrong, and what it may do otherwise than documented: for one account, or for all. */

import { setTimeout as sleep } from 'node:timers/promises';
import { failure, type Reply } from './reads.ts';
import type { WireRecord } from './world.ts';

export interface Fault {
  /** What is responded in place of doing what was asked for; undefined for no response at all, ever. */
  readonly instead?: () => Reply | undefined;
  /** What becomes of the response. What was asked for has been done. */
  readonly after?: (reply: Reply, asked: Asked) => Reply | Promise<Reply>;
}

export interface Asked {
  readonly method: string;
  /** Below the base, without the query. */
  readonly path: string;
}

const html = '<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>';

/** The data of a success changed, or the reply as it was. */
const mapData = (reply: Reply, change: (data: unknown) => unknown): Reply =>
  isObject(reply.body) && reply.body.ok === true
    ? { ...reply, body: { ...reply.body, data: change(reply.body.data) } }
    : reply;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (data: unknown): data is { data: unknown[]; pagination?: unknown } =>
  isObject(data) && Array.isArray(data.data);

/** Every object in the data changed, those within others first. */
function mapObjects(data: unknown, change: (record: Record<string, unknown>) => unknown): unknown {
  if (Array.isArray(data)) return data.map((value) => mapObjects(value, change));
  if (!isObject(data)) return data;
  return change(
    Object.fromEntries(Object.entries(data).map(([name, value]) => [name, mapObjects(value, change)])),
  );
}

/** A fault that changes every object in the data of successes. */
const ofObjects = (change: (record: Record<string, unknown>) => unknown): Fault => ({
  after: (reply) => mapData(reply, (data) => mapObjects(data, change)),
});

export const faults = {
  slow: (milliseconds: number): Fault => ({
    async after(reply) {
      await sleep(milliseconds);
      return reply;
    },
  }),
  /** Never responds. */
  hang: { instead: () => undefined },
  error500: { instead: () => failure(500, 'Internal server error') },
  unavailable: (retryAfter: number): Fault => ({
    instead: () => ({
      ...failure(503, 'Service unavailable'),
      headers: { 'Retry-After': String(retryAfter) },
    }),
  }),
  /** A page of something in between. */
  html: { instead: () => ({ status: 502, body: html, headers: { 'Content-Type': 'text/html' } }) },
  html200: { instead: () => ({ status: 200, body: html, headers: { 'Content-Type': 'text/html' } }) },
  brokenJson: { instead: () => ({ status: 200, body: '{"ok":true,"data":{"id":' }) },
  otherEnvelope: { after: (reply) => ({ ...reply, body: { result: reply.body } }) },
  emptyBody: { after: (reply) => ({ ...reply, body: '' }) },
  emptyLists: {
    after: (reply) => mapData(reply, (data) => (isList(data) ? { ...data, data: [] } : data)),
  },
  /** Nothing is where it was. */
  missing: { instead: () => failure(404, 'Not found') },
  /** Does what was asked for, and then fails. */
  lostResponse: { after: () => failure(500, 'Internal server error') },
} as const satisfies Readonly<Record<string, Fault | ((value: number) => Fault)>>;

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The same instant in the time of a place two hours and a half ahead. */
const withOffset = (text: string) =>
  new Date(Date.parse(text) + 9_000_000).toISOString().replace('Z', '+02:30');

const timestampsAs = (written: (text: string) => string) =>
  ofObjects((record) => mapValues(record, (value) => (isTimestamp(value) ? written(value) : value)));

const isTimestamp = (value: unknown): value is string => typeof value === 'string' && timestamp.test(value);

const mapValues = (record: Record<string, unknown>, change: (value: unknown, name: string) => unknown) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));

/** Fields that the documentation does not require. */
const optional = new Set([
  'lastLogAt',
  'createdDate',
  'apiHits',
  'serialNumber',
  'softwareVersion',
  'dttTotalReps',
  'dttTotalSessions',
  'endDate',
  'pairingCode',
  'pairingExpires',
  'order',
]);

/** What the service may do otherwise, and a lenient client understands. */
export const variants = {
  /** As the service's own documentation has it. */
  numericSerialNumbers: ofObjects((record) =>
    mapValues(record, (value, name) => (name === 'serialNumber' ? 1001 : value)),
  ),
  numbersAsText: ofObjects((record) =>
    mapValues(record, (value) => (typeof value === 'number' ? String(value) : value)),
  ),
  noSubscriptionTier: ofObjects((record) =>
    'subscriptionTier' in record ? { ...record, subscriptionTier: null } : record,
  ),
  offsets: timestampsAs(withOffset),
  withoutMilliseconds: timestampsAs((text) => text.replace('.000Z', 'Z')),
  withMicroseconds: timestampsAs((text) => text.replace('Z', '123Z')),
  /** Kinds of segments and states of locks that nobody knows. */
  unknownEnumValues: ofObjects((record) =>
    mapValues(record, (value, name) => (name === 'type' || name === 'lockState' ? 'unheard-of' : value)),
  ),
  missingOptionalFields: ofObjects((record) =>
    Object.fromEntries(
      // The creation of a template is required.
      Object.entries(record).filter(
        ([name]) => !optional.has(name) || (name === 'createdDate' && 'isPublic' in record),
      ),
    ),
  ),
  /** What is null comes with a message. */
  messages: {
    after: (reply) =>
      isObject(reply.body) && reply.body.data === null
        ? { ...reply, body: { ...reply.body, message: 'there is none' } }
        : reply,
  },
  /** No record is there, but a success says so. */
  nullForMissing: {
    after: (reply) =>
      reply.status === 404 ? { status: 200, body: { ok: true, data: null, message: 'not found' } } : reply,
  },
  withoutPagination: {
    after: (reply) => mapData(reply, (data) => (isList(data) ? { data: data.data } : data)),
  },
  /** Lists as the older documentation has them. */
  bareLists: { after: (reply) => mapData(reply, (data) => (isList(data) ? data.data : data)) },
  moreFields: ofObjects((record) => ({ ...record, toyTagline: null, iconId: 7 })),
} as const satisfies Readonly<Record<string, Fault>>;

/** A record that is not as it should be, by its path, such as `/dtt/1`, and in lists. */
export const changedRecord = (kind: string, id: number, change: (record: WireRecord) => unknown): Fault => ({
  after(reply, { path }) {
    const ofKind = (record: unknown) =>
      isObject(record) && record.id === id ? change({ ...record, id }) : record;
    if (path === kind)
      return mapData(reply, (data) => (isList(data) ? { ...data, data: data.data.map(ofKind) } : data));
    return path === `${kind}/${id}` ? mapData(reply, ofKind) : reply;
  },
});
