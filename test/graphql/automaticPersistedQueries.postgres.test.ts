/** Apollo's automatic persisted queries: a client sends the hash of a query, and the query only if the hash is unknown. */

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterAll(() => gateway?.close());

const hashOf = (query: string) => createHash('sha256').update(query).digest('hex');
const byHash = (query: string, version: unknown = 1) => ({
  extensions: { persistedQuery: { version, sha256Hash: hashOf(query) } },
});

interface AskOptions {
  readonly token?: string | undefined;
  readonly accept?: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
}

async function ask(
  body: Record<string, unknown>,
  {
    token = alice.token,
    accept = 'application/graphql-response+json',
    method = 'POST',
    headers: others,
  }: AskOptions = {},
) {
  const headers = {
    Accept: accept,
    ...(token !== '' && { Authorization: `Bearer ${token}` }),
    ...(method === 'POST' && { 'Content-Type': 'application/json' }),
    ...others,
  };
  const parameters = Object.entries(body).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const response =
    method === 'POST'
      ? await fetch(`${gateway.url}/graphql`, { method, headers, body: JSON.stringify(body) })
      : await fetch(`${gateway.url}/graphql?${new URLSearchParams(parameters)}`, { headers });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

const username = (name: string) => ({ data: { viewer: { username: name } } });
const notFound = {
  errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
};

let count = 0;
/** A query that no client has sent before. */
const fresh = () => `query Fresh${count++} { viewer { username } }`;

describe('the hash of a query', () => {
  it('runs the query after both were sent together, by either method', async () => {
    for (const method of ['POST', 'GET'] as const) {
      const query = fresh();
      expect(await ask(byHash(query), { method })).toMatchObject({ status: 200, body: notFound });
      expect((await ask({ query, ...byHash(query) }, { method })).body).toEqual(username('alice'));
      for (const again of ['POST', 'POST', 'GET', 'GET', 'POST'] as const)
        expect((await ask(byHash(query), { method: again })).body).toEqual(username('alice'));
    }
  });

  it('is unknown for a user when only another user has registered it', async () => {
    const query = fresh();
    await ask({ query, ...byHash(query) });
    expect((await ask(byHash(query), { token: bob.token })).body).toEqual(notFound);
    expect((await ask({ query, ...byHash(query) }, { token: bob.token })).body).toEqual(username('bob'));
    expect((await ask(byHash(query), { token: bob.token })).body).toEqual(username('bob'));
  });

  it('gets a cached response and supports conditional GET; the registering request is not cached', async () => {
    const query = fresh();
    const registering = await ask({ query, ...byHash(query) }, { method: 'GET' });
    expect(registering.headers.get('Cache-Control')).toBe('no-store');
    const first = await ask(byHash(query), { method: 'GET' });
    expect(first.headers.get('Cache-Control')).toBe('private, no-cache');
    const { hits } = gateway.responseCache.counters;
    const again = await ask(byHash(query), {
      method: 'GET',
      headers: { 'If-None-Match': first.headers.get('ETag') ?? '' },
    });
    expect(again).toMatchObject({ status: 304, body: undefined });
    expect(gateway.responseCache.counters.hits).toBe(hits + 1);
  });

  it('is rejected beside another query with an error that has the right hash, and nothing is registered', async () => {
    const query = fresh();
    const other = fresh();
    for (const method of ['POST', 'GET'] as const)
      expect(await ask({ query, ...byHash(other) }, { method, accept: 'application/json' })).toMatchObject({
        status: 400,
        body: {
          errors: [
            {
              message: `extensions.persistedQuery.sha256Hash is not that of the query, which is ${hashOf(query)}`,
              extensions: { code: 'BAD_USER_INPUT' },
            },
          ],
        },
      });
    for (const each of [query, other]) expect((await ask(byHash(each))).body).toEqual(notFound);
  });

  it('is rejected when its version is not 1 or it is not a string', async () => {
    const query = fresh();
    for (const [message, extensions] of [
      ['extensions.persistedQuery.version must be 1: there is no other', byHash(query, '1').extensions],
      [
        'extensions.persistedQuery must have a sha256Hash, which is a string',
        { persistedQuery: { version: 1, sha256Hash: 1 } },
      ],
    ] as const)
      for (const body of [{ extensions }, { query, extensions }])
        expect(await ask(body, { accept: 'application/json' })).toMatchObject({
          status: 400,
          body: { errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] },
        });
    expect((await ask(byHash(query))).body).toEqual(notFound);
  });

  it.each(['{', '{ nobody }'])('is not registered when the document is invalid: %s', async (query) => {
    const { status, body } = await ask({ query, ...byHash(query) });
    expect(status).toBe(400);
    expect(body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
    expect((await ask(byHash(query))).body).toEqual(notFound);
  });

  it('is ignored for a client without a token, which registers nothing and cannot use what is registered', async () => {
    const schema = 'query Schema { __schema { queryType { name } } }';
    const wrong = { extensions: { persistedQuery: { version: 1, sha256Hash: 'wrong' } } };
    for (const extensions of [byHash(schema), wrong])
      expect((await ask({ query: schema, ...extensions }, { token: '' })).body).toEqual({
        data: { __schema: { queryType: { name: 'Query' } } },
      });
    expect((await ask(byHash(schema))).body).toEqual(notFound);
    await ask({ query: schema, ...byHash(schema) });
    expect((await ask(byHash(schema), { token: '' })).status).toBe(401);
  });
});
