/** Faults of a service, and variants of its responses that differ from the documentation. */

import { setTimeout as sleep } from 'node:timers/promises';
import { failure, type Reply } from './reads.ts';
import type { WireRecord } from './world.ts';

export interface Fault {
  /** Gives the response, and the request is not executed; undefined for no response ever. */
  readonly instead?: () => Reply | undefined;
  /** Changes the response after the request was executed. */
  readonly after?: (reply: Reply, asked: Asked) => Reply | Promise<Reply>;
}

export interface Asked {
  readonly method: string;
  /** Below the base, without the query. */
  readonly path: string;
}

const html = '<!doctype html><title>Bad gateway</title><h1>Bad gateway</h1>';

/** Changes the data of a successful reply. Any other reply stays. */
const mapData = (reply: Reply, change: (data: unknown) => unknown): Reply =>
  isObject(reply.body) && reply.body.ok === true
    ? { ...reply, body: { ...reply.body, data: change(reply.body.data) } }
    : reply;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isList = (data: unknown): data is { data: unknown[]; pagination?: unknown } =>
  isObject(data) && Array.isArray(data.data);

/** Changes every object in the data, nested ones first. */
function mapObjects(data: unknown, change: (record: Record<string, unknown>) => unknown): unknown {
  if (Array.isArray(data)) return data.map((value) => mapObjects(value, change));
  if (!isObject(data)) return data;
  return change(
    Object.fromEntries(Object.entries(data).map(([name, value]) => [name, mapObjects(value, change)])),
  );
}

/** A fault that changes every object in the data of successful replies. */
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
  /** An error page of a proxy. */
  html: { instead: () => ({ status: 502, body: html, headers: { 'Content-Type': 'text/html' } }) },
  html200: { instead: () => ({ status: 200, body: html, headers: { 'Content-Type': 'text/html' } }) },
  brokenJson: { instead: () => ({ status: 200, body: '{"ok":true,"data":{"id":' }) },
  otherEnvelope: { after: (reply) => ({ ...reply, body: { result: reply.body } }) },
  emptyBody: { after: (reply) => ({ ...reply, body: '' }) },
  emptyLists: {
    after: (reply) => mapData(reply, (data) => (isList(data) ? { ...data, data: [] } : data)),
  },
  /** Every path is a 404. */
  missing: { instead: () => failure(404, 'Not found') },
  /** Executes the request, and then fails. */
  lostResponse: { after: () => failure(500, 'Internal server error') },
} as const satisfies Readonly<Record<string, Fault | ((value: number) => Fault)>>;

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The same instant with a UTC offset of two and a half hours. */
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

/** Variants of responses that a lenient client understands. */
export const variants = {
  /** Serial numbers are numbers in the service's own documentation. */
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
  /** Unknown kinds of segments and states of locks. */
  unknownEnumValues: ofObjects((record) =>
    mapValues(record, (value, name) => (name === 'type' || name === 'lockState' ? 'unheard-of' : value)),
  ),
  missingOptionalFields: ofObjects((record) =>
    Object.fromEntries(
      // `createdDate` is required in templates.
      Object.entries(record).filter(
        ([name]) => !optional.has(name) || (name === 'createdDate' && 'isPublic' in record),
      ),
    ),
  ),
  /** A response with null has a message. */
  messages: {
    after: (reply) =>
      isObject(reply.body) && reply.body.data === null
        ? { ...reply, body: { ...reply.body, message: 'there is none' } }
        : reply,
  },
  /** A missing record is a success with null, and not a 404. */
  nullForMissing: {
    after: (reply) =>
      reply.status === 404 ? { status: 200, body: { ok: true, data: null, message: 'not found' } } : reply,
  },
  withoutPagination: {
    after: (reply) => mapData(reply, (data) => (isList(data) ? { data: data.data } : data)),
  },
  /** Lists in the form of the older documentation. */
  bareLists: { after: (reply) => mapData(reply, (data) => (isList(data) ? data.data : data)) },
  moreFields: ofObjects((record) => ({ ...record, toyTagline: null, iconId: 7 })),
} as const satisfies Readonly<Record<string, Fault>>;

/** Changes one record, both by its own path, such as `/dtt/1`, and in lists. */
export const changedRecord = (kind: string, id: number, change: (record: WireRecord) => unknown): Fault => ({
  after(reply, { path }) {
    const ofKind = (record: unknown) =>
      isObject(record) && record.id === id ? change({ ...record, id }) : record;
    if (path === kind)
      return mapData(reply, (data) => (isList(data) ? { ...data, data: data.data.map(ofKind) } : data));
    return path === `${kind}/${id}` ? mapData(reply, ofKind) : reply;
  },
});
