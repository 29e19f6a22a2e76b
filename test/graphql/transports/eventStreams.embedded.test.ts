/**
 * Subscriptions by HTTP: event streams of many operations (the single connection mode of the GraphQL over SSE protocol, and
 * the cases of graphql-sse's own tests that are about it), and Apollo's multipart protocol.
 */

import { type Client, createClient } from 'graphql-sse';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { openTestGateway, postJson, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;
const leaving: AbortController[] = [];

beforeAll(async () => {
  gateway = await openTestGateway(undefined, { mostConnections: 2 });
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterEach(() => {
  for (const each of leaving.splice(0)) each.abort();
});
afterAll(() => gateway?.close());

const activeName = 'subscription { activeDttTemplate { name } }';
const activate = (index: 0 | 1 | 2) =>
  postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[index]}`, { isActive: true });
const nameOf = (index: number) => ({ data: { activeDttTemplate: { name: `Program ${index} of alice` } } });

interface RequestOptions {
  readonly method?: string;
  readonly token?: string;
  readonly stream?: string;
  readonly accept?: string;
  readonly query?: string;
  readonly body?: unknown;
}

async function ask({
  method = 'POST',
  token = alice.token,
  stream,
  accept,
  query = '',
  body,
}: RequestOptions) {
  const left = new AbortController();
  leaving.push(left);
  return fetch(`${gateway.url}/graphql${query}`, {
    method,
    signal: left.signal,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(stream !== undefined && { 'X-GraphQL-Event-Stream-Token': stream }),
      ...(accept !== undefined && { Accept: accept }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

const events = 'text/event-stream';
const reserve = async (token = alice.token) => (await ask({ method: 'PUT', token })).text();
const operate = (stream: string, operationId: string, query: string, token = alice.token) =>
  ask({ stream, token, body: { query, extensions: { operationId } } });

/** Opens a stream, whose events are read one by one. */
async function open(stream: string) {
  const response = await ask({ method: 'GET', stream, accept: events });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    response,
    /** The next event that is not a heartbeat; undefined at the end. */
    async next(): Promise<{ event: string; data: unknown } | undefined> {
      for (;;) {
        const [block = '', ...rest] = text.split('\n\n');
        if (rest.length > 0) {
          text = rest.join('\n\n');
          const [, event, data] = /^event: (\w+)\ndata: ?(.*)$/.exec(block) ?? [];
          if (event !== undefined) return { event, data: data === '' ? undefined : JSON.parse(data ?? '') };
          continue;
        }
        const piece = await reader?.read();
        if (!piece || piece.done) return undefined;
        text += piece.value;
      }
    },
  };
}

describe('an event stream', () => {
  it('is reserved and opened, and delivers the results of operations until they are completed', async () => {
    await activate(0);
    const reserved = await ask({ method: 'PUT' });
    expect(reserved.status).toBe(201);
    expect(reserved.headers.get('Content-Type')).toBe('text/plain; charset=utf-8');
    const token = await reserved.text();
    expect(token).toMatch(/^[\w-]{43}$/);
    const stream = await open(token);
    expect(stream.response.headers.get('Content-Type')).toBe(events);
    expect((await operate(token, 'q', '{ viewer { username } }')).status).toBe(202);
    const payload = { data: { viewer: { username: 'alice' } } };
    expect(await stream.next()).toEqual({ event: 'next', data: { id: 'q', payload } });
    expect(await stream.next()).toEqual({ event: 'complete', data: { id: 'q' } });
    expect((await operate(token, 's', activeName)).status).toBe(202);
    expect(await stream.next()).toEqual({ event: 'next', data: { id: 's', payload: nameOf(0) } });
    await activate(1);
    expect(await stream.next()).toEqual({ event: 'next', data: { id: 's', payload: nameOf(1) } });
    expect((await ask({ method: 'DELETE', stream: token, query: '?operationId=s' })).status).toBe(200);
    await activate(2);
    await operate(token, 's', '{ viewer { username } }');
    expect(await stream.next()).toEqual({ event: 'next', data: { id: 's', payload } });
  });

  it('delivers results from before it was opened, and accepts its token in the URL', async () => {
    const token = await reserve();
    await operate(token, '1', '{ viewer { username } }');
    const response = await ask({ method: 'GET', query: `?token=${token}`, accept: events });
    const reader = response.body?.getReader();
    let text = '';
    while (!text.includes('complete')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(text).toBe(
      ':\n\nevent: next\ndata: {"id":"1","payload":{"data":{"viewer":{"username":"alice"}}}}\n\nevent: complete\ndata: {"id":"1"}\n\n',
    );
  });

  it('is not found by an unknown token or by another user, and needs a valid Authorization', async () => {
    const token = await reserve(bob.token);
    for (const stream of [token, 'x'.repeat(43)])
      for (const given of [
        { method: 'GET', accept: events },
        { method: 'DELETE', query: '?operationId=1' },
        { body: { query: '{ viewer { username } }', extensions: { operationId: '1' } } },
      ]) {
        const response = await ask({ ...given, stream });
        expect(response.status).toBe(404);
        expect((await response.json()).errors[0].message).toMatch(
          /^There is no event stream with this token/,
        );
      }
    for (const method of ['PUT', 'DELETE'])
      expect((await ask({ method, token: 'dvt_wrong', stream: token })).status).toBe(401);
  });

  it('rejects an invalid request at once, and stays open', async () => {
    const token = await reserve();
    const stream = await open(token);
    const unnamed = await ask({ stream: token, body: { query: '{ viewer { username } }' } });
    expect([unnamed.status, await unnamed.text()]).toEqual([
      400,
      expect.stringContaining('extensions.operationId'),
    ]);
    const invalid = await operate(token, '1', '{ nothing }');
    expect([invalid.status, await invalid.text()]).toEqual([
      400,
      expect.stringContaining('Cannot query field'),
    ]);
    await operate(token, '1', activeName);
    expect((await operate(token, '1', activeName)).status).toBe(409);
    expect((await ask({ method: 'GET', stream: token, accept: events })).status).toBe(409);
    expect((await ask({ method: 'GET', stream: token, accept: 'application/json' })).status).toBe(406);
    expect((await ask({ method: 'DELETE', stream: token })).status).toBe(400);
    expect(await stream.next()).toMatchObject({ event: 'next', data: { id: '1' } });
  });

  it('rejects operations with 429 while too many of its results are unread', async () => {
    const token = await reserve();
    const statuses = new Set<number>();
    const fields = Array.from({ length: 25 }, (_, index) => `${`a${index}`.padEnd(100, 'x')}: name`);
    const long = `{ __schema { types { ${fields.join(' ')} } } }`;
    for (let count = 0; count < 60 && !statuses.has(429); count++)
      statuses.add((await operate(token, String(count), long)).status);
    expect([...statuses]).toEqual([202, 429]);
    const stream = await open(token);
    expect(await stream.next()).toMatchObject({ event: 'next', data: { id: '0' } });
    await expect.poll(async () => (await operate(token, 'more', '{ viewer { username } }')).status).toBe(202);
  });

  it('is not opened by a HEAD request', async () => {
    const token = await reserve();
    const head = await ask({ method: 'HEAD', stream: token, accept: events });
    expect([head.status, head.headers.get('Content-Type')]).toEqual([200, events]);
    await operate(token, '1', '{ viewer { username } }');
    const stream = await open(token);
    expect(await stream.next()).toMatchObject({ event: 'next', data: { id: '1' } });
  });

  it('counts as a connection of its user until its client disconnects', async () => {
    await expect.poll(async () => (await ask({ method: 'PUT', token: bob.token })).status).toBe(201);
    const full = await ask({ method: 'PUT', token: bob.token });
    expect([full.status, await full.text()]).toEqual([429, expect.stringContaining('at most 2 are allowed')]);
    const tokens = [await reserve(), await reserve()];
    expect((await ask({ method: 'PUT' })).status).toBe(429);
    for (const token of tokens) await open(token);
    for (const each of leaving.splice(0)) each.abort();
    await expect.poll(async () => (await ask({ method: 'PUT' })).status).toBe(201);
    await open(await reserve());
  });

  it('ends when the token that reserved it is revoked', async () => {
    const { username } = await createAccount(gateway.database.client, 'carol');
    const { token, id } = await createToken(gateway.database.pool, username, 'to revoke');
    const name = await reserve(token);
    const response = await ask({ method: 'GET', token, stream: name, accept: events });
    await operate(name, 's', activeName, token);
    await revokeToken(gateway.database.client, id);
    expect(await response.text()).not.toContain('complete');
  });
});

describe("graphql-sse's client", () => {
  const clients: Client<boolean>[] = [];
  afterEach(() => {
    for (const client of clients.splice(0)) client.dispose();
  });

  it.each([false, true])(
    'runs queries, mutations and subscriptions with singleConnection: %s',
    async (singleConnection) => {
      const dave = await createAccount(gateway.database.client, `dave-${singleConnection}`);
      const client = createClient({
        url: `${gateway.url}/graphql`,
        singleConnection,
        headers: { Authorization: `Bearer ${dave.token}` },
      });
      clients.push(client);
      const results = client.iterate({ query: '{ viewer { username } }' });
      expect((await results.next()).value).toEqual({ data: { viewer: { username: dave.username } } });
      const changes = client.iterate({ query: activeName });
      expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: null } });
      const [databaseId] = dave.dttTemplates;
      const query = `mutation { activateTemplate(template: { databaseId: ${databaseId} }) { scheduleTypeChanged } }`;
      expect((await client.iterate({ query }).next()).value).toMatchObject({ data: {} });
      const name = `Program 0 of ${dave.username}`;
      expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: { name } } });
      await changes.return?.();
    },
  );
});

describe("Apollo's multipart protocol", () => {
  const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json';

  it('carries each result of a subscription in a part', async () => {
    await activate(0);
    const response = await ask({ accept, body: { query: activeName } });
    expect(response.status).toBe(200);
    expect(response.headers.get('Content-Type')).toBe(
      'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
    );
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const expected = async (text: string, part: object) => {
      let got = text;
      while (!got.endsWith('}\r\n--graphql')) got += (await reader?.read())?.value;
      expect(got).toContain(`\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(part)}\r\n--graphql`);
    };
    await expected('', { payload: nameOf(0) });
    await activate(1);
    await expected('', { payload: nameOf(1) });
  });

  it('says in its last part that the token is no longer valid', async () => {
    const { username } = await createAccount(gateway.database.client, 'erin');
    const { token, id } = await createToken(gateway.database.pool, username, 'to revoke');
    const response = await ask({ accept, token, body: { query: activeName } });
    await revokeToken(gateway.database.client, id);
    expect(await response.text()).toMatch(/"payload":null,.*"code":"UNAUTHENTICATED".*--graphql--\r\n$/s);
  });

  it('is not used for a query or for the errors of an invalid subscription, which are JSON', async () => {
    const query = await ask({ accept, body: { query: '{ viewer { username } }' } });
    expect(query.headers.get('Content-Type')).toMatch(/^application\/json/);
    const wrong = await ask({ accept, body: { query: 'subscription { nothing }' } });
    expect(wrong.headers.get('Content-Type')).toMatch(/^application\/json/);
    expect((await wrong.json()).errors[0].extensions.code).toBe('BAD_USER_INPUT');
  });
});

it.each([
  ['an unknown field', { query: 'subscription { nothing }' }],
  [
    'a variable of another type',
    { query: 'subscription ($id: Int!) { dttDevice(databaseId: $id) { id } }', variables: { id: 'x' } },
  ],
  ['an unknown operationName', { query: activeName, operationName: 'Other' }],
])('the error of an invalid subscription is an event of its stream: %s', async (_, body) => {
  const response = await ask({ accept: events, body });
  expect([response.status, response.headers.get('Content-Type')]).toEqual([
    200,
    expect.stringContaining(events),
  ]);
  expect(await response.text()).toMatch(/event: next\ndata: \{"errors":.*"BAD_USER_INPUT".*event: complete/s);
});

it('a subscription of a client that accepts no stream is rejected with 406 and the media types of streams', async () => {
  const response = await ask({ accept: 'application/json', body: { query: activeName } });
  expect(response.status).toBe(406);
  expect((await response.json()).errors[0].message).toContain(
    'text/event-stream or multipart/mixed;subscriptionSpec=1.0 for a subscription',
  );
});
