/** The log: one line per request, that names it and says nothing of a person. */

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Account, createAccount } from './accounts.ts';
import { openTestGateway, type TestGateway } from './gateway.ts';

let gateway: TestGateway;
let alice: Account;

beforeAll(async () => {
  gateway = await openTestGateway(undefined, { logLevel: 'info' });
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

const usableId = /^[\w.-]{1,64}$/;

/** Asks, and waits for the one line that the log has of it. */
async function lineOf(path: string, { headers, ...options }: RequestInit = {}) {
  const before = gateway.log.length;
  const response = await fetch(gateway.url + path, {
    redirect: 'manual',
    ...options,
    headers: { Authorization: `Bearer ${alice.token}`, ...headers },
  });
  await response.text();
  await vi.waitFor(() => expect(gateway.log.length).toBeGreaterThan(before));
  const lines = gateway.log.slice(before);
  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0] ?? '');
  expect(response.headers.get('X-Request-Id')).toBe(line.request);
  return { line, text: lines[0] ?? '' };
}

const post = (query: string, variables = {}) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query, variables }),
});

describe('the line of a request', () => {
  const record = () => `/api/v1/dtt/sessions/${alice.dttSessions[0]}`;
  const named = 'query Secret($id: Int!) { mine: dttSession(databaseId: $id) { name } }';

  it.each([
    ['a route, without its id', record, {}, 'rest', 'GET /dtt/sessions/{id}', 200],
    ['the same from memory', record, {}, 'rest', 'GET /dtt/sessions/{id}', 200],
    ['a missing record', () => '/api/v1/dtt/2147483647', {}, 'rest', 'GET /dtt/{id}', 404],
    ['a bad id', () => '/api/v1/dtt/secret', {}, 'rest', 'GET /dtt/{id}', 400],
    ['an unknown path', () => '/api/v1/secret', {}, 'rest', undefined, 404],
    ['a stranger', record, { headers: { Authorization: 'Bearer secret' } }, 'rest', undefined, 401],
    ['a query', () => '/graphql', post(named, { id: 1 }), 'graphql', 'query dttSession', 200],
    ['the same, compiled', () => '/graphql', post(named, { id: 1 }), 'graphql', 'query dttSession', 200],
    ['the same from memory', () => '/graphql', post(named, { id: 1 }), 'graphql', 'query dttSession', 200],
    [
      'a query of several fields',
      () => '/graphql',
      post('{ viewer { id } devices { id } }'),
      'graphql',
      'query of several fields',
      200,
    ],
    ['a query in the target', () => '/graphql?query={viewer{id}}', {}, 'graphql', 'query viewer', 200],
    ['an invalid document', () => '/graphql', post('{ secret }'), 'graphql', undefined, 200],
    ['a probe', () => '/healthz', {}, 'page', '/healthz', 200],
    ['a path that is nothing', () => '/secret', {}, 'page', undefined, 404],
  ])('says the door, the operation and the status of %s', async (_, path, init, door, operation, status) => {
    const { line, text } = await lineOf(path(), init);
    expect(line).toMatchObject({ level: 30, door, status });
    expect(line.operation).toBe(operation);
    expect(line.ms).toBeGreaterThan(0);
    expect(line.request).toMatch(usableId);
    expect(text).not.toContain(alice.token);
    expect(text).not.toMatch(/secret/i);
  });

  it.each([
    ['kept if it is plain', 'client-42.a_B', 'client-42.a_B'],
    ['replaced if it could forge a line', 'x" "level":60', expect.not.stringContaining('level')],
    ['replaced if it is long', 'x'.repeat(65), expect.stringMatching(/^[\da-f-]{36}$/)],
    ['replaced if it is a token', `dvt_${'A'.repeat(43)}`, expect.stringMatching(/^[\da-f-]{36}$/)],
  ])('has the id that the client gave its request: %s', async (_, given, expected) => {
    const { line } = await lineOf('/healthz', { headers: { 'X-Request-Id': given } });
    expect(line.request).toEqual(expected);
  });

  it('has the id of the request whose error it hides', async () => {
    const before = gateway.log.length;
    await gateway.database.pool.query('ALTER TABLE "LockTemplate" RENAME TO "Elsewhere"');
    try {
      const response = await fetch(`${gateway.url}/api/v1/lkbx/templates`, {
        headers: { Authorization: `Bearer ${alice.token}` },
      });
      expect(response.status).toBe(500);
      await vi.waitFor(() => expect(gateway.log.length).toBe(before + 2));
      const [hidden, answered] = gateway.log.slice(before).map((line) => JSON.parse(line));
      expect(hidden).toMatchObject({ level: 50, request: response.headers.get('X-Request-Id') });
      expect(hidden.err.message).toMatch(/LockTemplate/);
      expect(answered).toMatchObject({ level: 40, request: hidden.request, status: 500 });
    } finally {
      await gateway.database.pool.query('ALTER TABLE "Elsewhere" RENAME TO "LockTemplate"');
    }
  });
});
