/** Reads responses of the REST API for tests, and builds its paths. */

import { expect } from 'vitest';
import type { Account } from './accounts.ts';
import type { List, RestResponse } from './gateway.ts';

/** A record in JSON. Each test checks the fields that it expects. */
export type JsonRecord = Record<string, unknown>;

/** The data of the response with a list, after a check of its form. */
export function listOf({ status, body }: RestResponse): List<JsonRecord> {
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(['ok', 'data']);
  expect(body.ok).toBe(true);
  expect(Object.keys(body.data ?? {})).toEqual(['data', 'pagination']);
  // The keys are checked above; the test checks the records.
  return body.data as List<JsonRecord>;
}

/** The data of the response with one record, after a check of its form. */
export function recordOf({ status, body }: RestResponse): JsonRecord {
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(['ok', 'data']);
  expect(body).toEqual({ ok: true, data: expect.any(Object) });
  return body.data as JsonRecord;
}

export const idsOf = (records: readonly JsonRecord[]) => records.map(({ id }) => id);

const ids: Readonly<Record<string, (account: Account) => readonly number[]>> = {
  '/users/{id}': ({ userId }) => [userId],
  '/dtt/{id}': ({ dttDevices }) => dttDevices,
  '/dtt/templates/{id}': ({ dttTemplates }) => dttTemplates,
  '/dtt/settings/{id}': ({ dttTemplates }) => dttTemplates,
  '/dtt/sessions/{id}': ({ dttSessions }) => dttSessions,
  '/lkbx/{id}': ({ lkbxDevices }) => lkbxDevices,
  '/lkbx/templates/{id}': ({ lockTemplates }) => lockTemplates,
  '/lkbx/sessions/{id}': ({ lockSessions }) => lockSessions,
  '/lkbx/session/{id}': ({ lockSessions }) => lockSessions,
  '/ossm/{id}': ({ ossmDevices }) => ossmDevices,
};

/** The paths with ids of the account in the place of `{id}`; the path itself if there is no such place. */
export function pathsFor(path: string, account: Account): string[] {
  if (!path.includes('{id}')) return [path];
  const idsAt = ids[path];
  if (!idsAt) throw new Error(`the tests do not know whose ids ${path} takes`);
  return idsAt(account).map((id) => withId(path, id));
}

/** The path with the text in the place of `{id}`. */
export const withId = (path: string, id: number | string) => path.replace('{id}', String(id));
