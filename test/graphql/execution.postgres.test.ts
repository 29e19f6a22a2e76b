/** An operation is executed exactly once, whatever comes of it and however it is sent; one that is rejected, not at all. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { executions } from '../../src/schema/compile.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;

beforeAll(async () => {
  // Nothing is cached, so that nothing but its own execution makes a response.
  gateway = await openTestGateway(undefined, { settings: { BATCHING: 'on' }, cacheBytes: 0 });
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

type Request = Readonly<Record<string, unknown>>;

function send(body: unknown, accept = 'application/json'): Promise<Response> {
  const headers = {
    Authorization: `Bearer ${alice.token}`,
    'Content-Type': 'application/json',
    Accept: accept,
  };
  return fetch(`${gateway.url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
}

function sendByGet({ query, variables = {} }: Request): Promise<Response> {
  const parameters = new URLSearchParams({ query: String(query), variables: JSON.stringify(variables) });
  return fetch(`${gateway.url}/graphql?${parameters}`, {
    headers: { Authorization: `Bearer ${alice.token}` },
  });
}

const ways: [how: string, send: (request: Request) => Promise<Response>][] = [
  ['by POST', send],
  ['by GET', sendByGet],
  ['in a batch', (request) => send([request])],
  ['as a stream of events', (request) => send(request, 'text/event-stream')],
  ['in parts', (request) => send(request, 'multipart/mixed')],
];

/** What the responses to a request say, and how many executions and statements each of them took. */
async function countsFor(request: Request, respond: (request: Request) => Promise<Response>) {
  const found = [];
  // A repeated request takes the same way.
  for (let time = 0; time < 3; time++) {
    const before = executions.compiled + executions.interpreted;
    const text = await (await respond(request)).text();
    found.push({ text, executions: executions.compiled + executions.interpreted - before });
  }
  return found;
}

const size = 'query ($n: Int) { dttDevices(first: $n) { totalCount } }';
const activate =
  'mutation { activateTemplate(template: { databaseId: 2147483647 }) { scheduleTypeChanged } }';

describe('an operation is executed once', () => {
  it.each<[what: string, request: Request, says: RegExp]>([
    ['that succeeds', { query: '{ viewer { username } }' }, /"alice"/],
    ['with an argument that is out of bounds', { query: size, variables: { n: 0 } }, /"BAD_USER_INPUT"/],
    [
      'with a null that is found when it runs',
      { query: 'query ($n: Int = 1) { dttDevice(databaseId: $n) { id } }', variables: { n: null } },
      /must not be null/,
    ],
    ['of several versions', { query: '{ viewer { id @skip(if: true) rank } }' }, /"rank":0/],
  ])('%s', async (_, request, says) => {
    for (const [how, respond] of ways)
      for (const { text, executions: count } of await countsFor(request, respond)) {
        expect(text, how).toMatch(says);
        expect(count, how).toBe(1);
      }
  });

  it('that writes and fails', async () => {
    for (const [how, respond] of ways)
      for (const { text, executions: count } of await countsFor({ query: activate }, respond)) {
        expect(text, how).toMatch(how === 'by GET' ? /only perform a mutation/ : /"NOT_FOUND"/);
        expect(count, how).toBe(how === 'by GET' ? 0 : 1);
      }
  });

  it('that the database fails, with one statement', async () => {
    const { pool } = gateway.database;
    await pool.query('ALTER TABLE "DttDevice" RENAME TO "Elsewhere"');
    try {
      for (const [how, respond] of ways) {
        const before = gateway.log.length;
        for (const { text, executions: count } of await countsFor({ query: size }, respond)) {
          expect(text, how).toMatch(/"INTERNAL_SERVER_ERROR"/);
          expect(count, how).toBe(1);
        }
        expect(gateway.log.length - before, how).toBe(3);
      }
    } finally {
      await pool.query('ALTER TABLE "Elsewhere" RENAME TO "DttDevice"');
    }
  });
});

describe('nothing is executed of a request', () => {
  it.each<[what: string, request: Request, says: RegExp]>([
    ['with a syntax error', { query: '{' }, /Syntax Error/],
    ['that is invalid', { query: '{ nobody }' }, /Cannot query field/],
    ['with a wrong variable', { query: size, variables: { n: 'x' } }, /Variable \\"\$n\\" got invalid value/],
    ['that is too deep', { query: `{${'viewer{'.repeat(21)}id${'}'.repeat(21)}}` }, /at most 20 are allowed/],
    [
      'that is too complex',
      { query: '{ dttTemplates(first: 100) { nodes { sessions(first: 100) { nodes { id name } } } } }' },
      /complexity of 20202; at most 20000 is allowed/,
    ],
    ['that names no operation', { query: 'query A { __typename } query B { __typename }' }, /has to name/],
  ])('%s', async (_, request, says) => {
    for (const [how, respond] of ways)
      for (const { text, executions: count } of await countsFor(request, respond)) {
        expect(text, how).toMatch(says);
        expect(count, how).toBe(0);
      }
  });

  it('that is not well-formed', async () => {
    const [id] = alice.dttTemplates;
    const query = `mutation { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged } }`;
    for (const odd of [{ other: 1 }, { variables: [] }, { operationName: 1 }, { extensions: 'x' }])
      for (const accept of ['application/json', 'text/event-stream', 'multipart/mixed'])
        for (const { text, executions: count } of await countsFor({ query, ...odd }, (request) =>
          send(request, accept),
        )) {
          expect(text).toMatch(/"BAD_USER_INPUT"/);
          expect(count).toBe(0);
        }
  });
});
