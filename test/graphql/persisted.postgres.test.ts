/**
 * Persisted operations, which requests name instead of sending their text; and Apollo's automatic ones: a client sends the hash of a
 * query, and the query only if the hash is unknown.
 */

import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { getGraphql, postGraphql, type TestGateway } from '../support/gateway.ts';
import { newFolder } from '../support/newFolder.ts';
import { hasPersistedFile } from '../support/settings.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const viewer = 'query Viewer { viewer { username } }';
const first = 'query First($n: Int!) { dttDevices(first: $n) { nodes { bubbleId } } }';
const hashOf = (query: string) => createHash('sha256').update(query).digest('hex');
const id = hashOf(viewer);

const onlyPersisted =
  'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query';

const folder = newFolder();
const settings = { PERSISTED_OPERATIONS_FILE: join(folder, 'persisted.json') };
await writeFile(settings.PERSISTED_OPERATIONS_FILE, JSON.stringify({ [id]: viewer, first }));
const { gateway: open, alice, bob } = await gatewayWith(['alice', 'bob'], { settings });
const only = await gatewayBeside(open.database, {
  settings: { ...settings, PERSISTED_OPERATIONS: 'only' },
});

const byHash = (query: string, version: unknown = 1) => ({
  extensions: { persistedQuery: { version, sha256Hash: hashOf(query) } },
});

interface AskOptions {
  readonly at?: TestGateway;
  readonly token?: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
}

async function ask(
  parameters: object,
  { at = open, token = alice.token, method = 'POST', headers: others }: AskOptions = {},
) {
  const request = method === 'POST' ? postGraphql : getGraphql;
  const accept = { Accept: 'application/graphql-response+json', ...others };
  const { status, headers, body } = await request(at, token === '' ? undefined : token, parameters, accept);
  return { status, headers, body: body && (await new Response(body).json()) };
}

/** Posts three times: the first is executed, and the others may come from the cache. The responses must be equal. */
async function post(at: TestGateway, body: object, token: string | undefined = alice.token) {
  const responses = [];
  for (let time = 0; time < 3; time++) {
    const response = await ask(body, { at, token });
    responses.push({ status: response.status, ...response.body });
  }
  for (const response of responses) expect(response).toEqual(responses[0]);
  return responses[0];
}

const rejected = (message: string) => ({
  status: 400,
  errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }],
});

describe('a persisted operation', () => {
  it.skipIf(!hasPersistedFile).each([
    ['its documentId', { documentId: id }],
    ['its documentId beside an empty query', { query: '', documentId: id }],
    ['its hash', byHash(viewer)],
    ['its hash beside an empty query', { query: '', ...byHash(viewer) }],
  ])('is run by %s', async (_, naming) => {
    for (const gateway of [open, only])
      expect(await post(gateway, naming)).toEqual({ status: 200, data: { viewer: { username: 'alice' } } });
  });

  it.each([
    [[open, only], { documentId: '__proto__' }, 'There is no persisted operation with the id "__proto__"'],
    [
      [open, only],
      { documentId: 'x'.repeat(101) },
      `There is no persisted operation with the id "${'x'.repeat(100)}"`,
    ],
    [[open, only], { documentId: { toString: 1 } }, 'documentId must be a string'],
    [[only], { query: viewer }, onlyPersisted],
    [[only], { query: '' }, onlyPersisted],
    [[only], {}, onlyPersisted],
  ])('is rejected if it is named wrongly or sent as text: %#', async (gateways, naming, message) => {
    for (const gateway of gateways) expect(await post(gateway, naming)).toEqual(rejected(message));
  });

  it('is rejected when its hash is unknown and no other hash is registered', async () => {
    const message = 'PersistedQueryNotSupported';
    const errors = [{ message, extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }];
    expect(await post(only, byHash('unknown'))).toEqual({ status: 200, errors });
  });

  it('is rejected with 401 without a token, whether it exists or not', async () => {
    for (const gateway of [open, only]) {
      for (const documentId of [id, 'nothing', { toString: 1 }]) {
        expect(await post(gateway, { documentId }, '')).toEqual({
          status: 401,
          errors: [
            {
              message:
                'Unauthorized: the request has no Authorization header, such as Authorization: Bearer TOKEN',
              extensions: { code: 'UNAUTHENTICATED' },
            },
          ],
        });
      }
    }
  });
});

it.skipIf(!hasPersistedFile)(
  'a response that was cached for an id is not sent after the file has another operation, or none, for the id',
  async () => {
    const other = 'query Viewer { viewer { id username } }';
    const documentId = 'changing';
    const path = join(folder, 'changing.json');
    const write = (operations: object) => writeFile(path, JSON.stringify(operations));
    await write({ [documentId]: viewer });
    const gateway = await gatewayBeside(open.database, {
      settings: { PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: path },
    });
    const askBy = async (method: 'GET' | 'POST') => (await ask({ documentId }, { at: gateway, method })).body;
    for (const method of ['GET', 'GET', 'POST', 'POST', 'POST'] as const)
      expect(await askBy(method)).toEqual({ data: { viewer: { username: 'alice' } } });
    await write({ [documentId]: other });
    const changed = { data: { viewer: { id: expect.any(String), username: 'alice' } } };
    await vi.waitFor(async () => expect(await askBy('GET')).toEqual(changed), 20_000);
    expect(await askBy('POST')).toEqual(changed);
    await write({ another: other });
    const gone = { errors: [{ message: expect.stringContaining('no persisted operation') }] };
    await vi.waitFor(async () => expect(await askBy('POST')).toMatchObject(gone), 20_000);
    expect(await askBy('GET')).toMatchObject(gone);
  },
);

const username = (name: string) => ({ data: { viewer: { username: name } } });
const notFound = {
  errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
};

let count = 0;
/** A query that no client has sent before. */
const fresh = (name = 'Fresh') => `query ${name} { viewer { username } } # ${count++}`;

describe('the hash of a query', () => {
  it('runs the query after both were sent together, by either method', async () => {
    for (const method of ['POST', 'GET'] as const) {
      const query = `query Other { viewer { rank } } ${fresh('Named')}`;
      const named = { ...byHash(query), operationName: 'Named' };
      expect(await ask(named, { method })).toMatchObject({ status: 200, body: notFound });
      expect((await ask({ query, ...named }, { method })).body).toEqual(username('alice'));
      for (const again of ['POST', 'POST', 'GET', 'GET', 'POST'] as const)
        expect((await ask(named, { method: again })).body).toEqual(username('alice'));
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
    const { hits } = open.responseCache.counters;
    const again = await ask(byHash(query), {
      method: 'GET',
      headers: { 'If-None-Match': first.headers.get('ETag') ?? '' },
    });
    expect(again).toMatchObject({ status: 304, body: null });
    expect(open.responseCache.counters.hits).toBe(hits + 1);
  });

  it('is rejected beside another query with an error that has the right hash, and nothing is registered', async () => {
    const query = fresh();
    const other = fresh();
    for (const method of ['POST', 'GET'] as const)
      expect(
        await ask({ query, ...byHash(other) }, { method, headers: { Accept: 'application/json' } }),
      ).toMatchObject({
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
        expect(await ask(body, { headers: { Accept: 'application/json' } })).toMatchObject({
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
