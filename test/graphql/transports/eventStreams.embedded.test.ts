/** Subscriptions by HTTP: event streams, with the client of their protocol, and Apollo's multipart protocol. */

import { createClient } from 'graphql-sse';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../../support/accounts.ts';
import { openBeside, openTestGateway, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
const leaving: AbortController[] = [];

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
});
afterEach(() => {
  for (const each of leaving.splice(0)) each.abort();
});
afterAll(() => gateway?.close());

const activeName = 'subscription { activeDttTemplate { name } }';

interface RequestOptions {
  readonly method?: string;
  readonly accept?: string;
  readonly body?: unknown;
  readonly at?: TestGateway;
}

async function ask({ method = 'POST', accept, body, at = gateway }: RequestOptions) {
  const left = new AbortController();
  leaving.push(left);
  return fetch(`${at.url}/graphql`, {
    method,
    signal: left.signal,
    headers: {
      Authorization: `Bearer ${alice.token}`,
      ...(accept !== undefined && { Accept: accept }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

const events = 'text/event-stream';

describe("graphql-sse's client", () => {
  it('runs queries, mutations and subscriptions', async () => {
    const dave = await createAccount(gateway.database.client, 'dave');
    const client = createClient({
      url: `${gateway.url}/graphql`,
      headers: { Authorization: `Bearer ${dave.token}` },
    });
    const results = client.iterate({ query: '{ viewer { username } }' });
    expect((await results.next()).value).toEqual({ data: { viewer: { username: 'dave' } } });
    const changes = client.iterate({ query: activeName });
    expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: null } });
    const [databaseId] = dave.dttTemplates;
    const query = `mutation { activateTemplate(template: { databaseId: ${databaseId} }) { scheduleTypeChanged } }`;
    expect((await client.iterate({ query }).next()).value).toMatchObject({ data: {} });
    const name = 'Program 0 of dave';
    expect((await changes.next()).value).toEqual({ data: { activeDttTemplate: { name } } });
    await changes.return?.();
    client.dispose();
  });

  it('is told to use a stream for each operation if it asks for a single one', async () => {
    const response = await ask({ method: 'PUT' });
    expect([response.status, response.headers.get('Allow'), await response.text()]).toEqual([
      405,
      'GET, HEAD, POST',
      expect.stringContaining('singleConnection: false'),
    ]);
  });
});

const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json';

it("Apollo's multipart protocol is not used for the errors of an invalid subscription, which are JSON", async () => {
  const wrong = await ask({ accept, body: { query: 'subscription { nothing }' } });
  expect(wrong.headers.get('Content-Type')).toMatch(/^application\/json/);
  expect((await wrong.json()).errors[0].extensions.code).toBe('BAD_USER_INPUT');
});

it('the error of an invalid subscription is an event of its stream', async () => {
  const response = await ask({ accept: events, body: { query: 'subscription { nothing }' } });
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

it('a stream of a gateway that closes does not look complete', async () => {
  const closing = new AbortController();
  const at = await openTestGateway(await openBeside(gateway.database), { closing: closing.signal });
  const body = { query: activeName };
  const [stream, parts] = [await ask({ at, accept: events, body }), await ask({ at, accept, body })];
  closing.abort();
  await expect(stream.text()).rejects.toThrow('terminated');
  expect(await parts.text()).toMatch(/"payload":null,"errors":.*"SERVICE_UNAVAILABLE".*--graphql--\r\n$/s);
  await at.close();
});
