/** Apollo's automatic persisted queries: a client sends the hash of a query, and the query where that is not known. */

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { fuzzed, fuzzTimeout } from '../support/fuzzed.ts';
import { openBeside, openTestGateway, type TestGateway } from '../support/gateway.ts';

let folder: string;
let on: TestGateway;
let off: TestGateway;
let only: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-automatic-'));
  const file = join(folder, 'operations.json');
  await writeFile(file, JSON.stringify({ known: 'query Known { viewer { username } }' }));
  const settings = { PERSISTED_OPERATIONS_FILE: file, MAX_BODY_KB: '8192' };
  on = await openTestGateway(undefined, { settings });
  off = await openTestGateway(await openBeside(on.database), {
    settings: { ...settings, AUTOMATIC_PERSISTED_QUERIES: 'off' },
  });
  only = await openTestGateway(await openBeside(on.database), {
    settings: { ...settings, PERSISTED_OPERATIONS: 'only' },
  });
  alice = await createAccount(on.database.client, 'alice');
  bob = await createAccount(on.database.client, 'bob');
});
afterAll(async () => {
  await only?.close();
  await off?.close();
  await on?.close();
  await rm(folder, { recursive: true, force: true });
});

const hashOf = (query: string) => createHash('sha256').update(query).digest('hex');
const byHash = (query: string, version: unknown = 1) => ({
  extensions: { persistedQuery: { version, sha256Hash: hashOf(query) } },
});

interface Asking {
  readonly gateway?: TestGateway;
  readonly token?: string | undefined;
  readonly accept?: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Record<string, string>;
}

async function ask(
  body: Record<string, unknown>,
  {
    gateway = on,
    token = alice.token,
    accept = 'application/graphql-response+json',
    method = 'POST',
    headers: others,
  }: Asking = {},
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
const notSupported = {
  errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }],
};

/** A query that nobody has sent before. */
let count = 0;
const fresh = () => `query Fresh${count++} { viewer { username } }`;

/** Registers so much that everything else of the user is forgotten. */
async function forget(token = alice.token): Promise<void> {
  // To the character as much as a user may have.
  const query = `query Large${count++} { viewer { username } } #`.padEnd(2 * 1024 * 1024, 'x');
  await ask({ query, ...byHash(query) }, { token });
  const { body } = await ask(byHash(query), { token });
  expect(body.data).toBeDefined();
}

describe('a hash', () => {
  it.each([
    'application/graphql-response+json',
    'application/json',
    'application/graphql-response+json,application/json;q=0.9',
  ])('that is not known is said to be so with the status that Apollo Server gives it: %s', async (accept) => {
    for (const method of ['POST', 'GET'] as const) {
      const response = await ask(byHash(fresh()), { accept, method });
      expect(response).toMatchObject({ status: 200, body: notFound });
      expect(response.headers.get('Cache-Control')).toBe('no-store');
    }
  });

  it('stands for the query once both were sent, by whatever method', async () => {
    for (const method of ['POST', 'GET'] as const) {
      const query = fresh();
      expect((await ask(byHash(query))).body).toEqual(notFound);
      expect((await ask({ query, ...byHash(query) }, { method })).body).toEqual(username('alice'));
      for (const again of ['POST', 'POST', 'GET', 'GET', 'POST'] as const)
        expect((await ask(byHash(query), { method: again })).body).toEqual(username('alice'));
    }
  });

  it('that a user has registered is not known for another', async () => {
    const query = fresh();
    await ask({ query, ...byHash(query) });
    expect((await ask(byHash(query), { token: bob.token })).body).toEqual(notFound);
    expect((await ask({ query, ...byHash(query) }, { token: bob.token })).body).toEqual(username('bob'));
    expect((await ask(byHash(query), { token: bob.token })).body).toEqual(username('bob'));
  });

  it('is asked for conditionally by GET, and cached; the request that registers is not', async () => {
    const query = fresh();
    const registering = await ask({ query, ...byHash(query) }, { method: 'GET' });
    expect(registering.headers.get('Cache-Control')).toBe('no-store');
    const first = await ask(byHash(query), { method: 'GET' });
    expect(first.headers.get('Cache-Control')).toBe('private, no-cache');
    const { hits } = on.responseCache.counters;
    const again = await ask(byHash(query), {
      method: 'GET',
      headers: { 'If-None-Match': first.headers.get('ETag') ?? '' },
    });
    expect(again).toMatchObject({ status: 304, body: undefined });
    expect(on.responseCache.counters.hits).toBe(hits + 1);
  });

  it('names a subscription as well', async () => {
    const query = 'subscription Changes { activeDttTemplate { name } }';
    const headers = {
      Authorization: `Bearer ${alice.token}`,
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
    };
    const subscribe = (body: object) =>
      fetch(`${on.url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
    for (const body of [{ query, ...byHash(query) }, byHash(query)]) {
      const response = await subscribe(body);
      const { value } = (await response.body?.getReader().read()) ?? {};
      expect(response.headers.get('Content-Type')).toContain('text/event-stream');
      expect(Buffer.from(value ?? []).toString()).not.toContain('PersistedQuery');
      await response.body?.cancel().catch(() => {});
    }
  });

  it('beside another query is an error that has the right one, and registers nothing', async () => {
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

  it('of a version that there is not, or that is no text, is an error', async () => {
    const query = fresh();
    const version = 'extensions.persistedQuery.version must be 1: there is no other';
    const text = 'extensions.persistedQuery must have a sha256Hash, which is a string';
    for (const [message, extensions] of [
      [version, byHash(query, 2).extensions],
      [version, byHash(query, '1').extensions],
      [version, byHash(query, null).extensions],
      [text, { persistedQuery: { version: 1 } }],
      [text, { persistedQuery: { version: 1, sha256Hash: 1 } }],
      [text, { persistedQuery: [] }],
      [text, { persistedQuery: 'x' }],
    ] as const)
      for (const body of [{ extensions }, { query, extensions }])
        expect(await ask(body, { accept: 'application/json' })).toMatchObject({
          status: 400,
          body: { errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] },
        });
    expect((await ask(byHash(query))).body).toEqual(notFound);
  });

  it.each(['{', '{ nobody }', 'query A { viewer { id } } query A { viewer { id } }'])(
    'of a document that cannot be run is not registered: %s',
    async (query) => {
      const { status, body } = await ask({ query, ...byHash(query) });
      expect(status).toBe(400);
      expect(body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
      expect((await ask(byHash(query))).body).toEqual(notFound);
    },
  );

  it('is nothing to a client without a token, who learns nothing of it and registers nothing', async () => {
    const schema = 'query Schema { __schema { queryType { name } } }';
    const wrong = { extensions: { persistedQuery: { version: 1, sha256Hash: 'wrong' } } };
    for (const extensions of [byHash(schema), wrong])
      expect((await ask({ query: schema, ...extensions }, { token: '' })).body).toEqual({
        data: { __schema: { queryType: { name: 'Query' } } },
      });
    await ask({ query: schema, ...byHash(schema) });
    for (const gateway of [on, off, only])
      expect((await ask(byHash(schema), { token: '', gateway })).status).toBe(401);
  });
});

describe('where there are no automatic persisted queries', () => {
  it('a hash is said to be not supported, so that clients send queries from then on', async () => {
    for (const gateway of [off, only]) {
      for (const accept of ['application/graphql-response+json', 'application/json'])
        for (const method of ['POST', 'GET'] as const)
          expect(await ask(byHash(fresh()), { gateway, accept, method })).toMatchObject({
            status: 200,
            body: notSupported,
          });
    }
  });

  it('a query is run whatever hash is beside it, and is not registered', async () => {
    const query = fresh();
    for (const extensions of [byHash(query), byHash('{ x }'), byHash(query, 2)])
      expect((await ask({ query, ...extensions }, { gateway: off })).body).toEqual(username('alice'));
    expect((await ask(byHash(query), { gateway: off })).body).toEqual(notSupported);
  });

  it('the operations of the file are found all the same', async () => {
    const extensions = { persistedQuery: { version: 1, sha256Hash: 'known' } };
    for (const gateway of [on, off, only])
      expect((await ask({ extensions }, { gateway })).body).toEqual(username('alice'));
  });
});

it('a query that was forgotten is registered again, although the response to the request that does was there', async () => {
  for (const method of ['POST', 'GET'] as const) {
    const query = fresh();
    // As often as it takes to have the response cached, if it were.
    for (let time = 0; time < 3; time++) await ask({ query, ...byHash(query) }, { method });
    await forget();
    const asked = { ...byHash(query), variables: {} };
    expect((await ask(asked, { method })).body).toEqual(notFound);
    await ask({ query, ...byHash(query) }, { method });
    expect((await ask(asked, { method })).body).toEqual(username('alice'));
  }
});

it(
  'whatever is registered, forgotten and changed, the protocol gives what plain queries give',
  async () => {
    const queries = [
      'query Active { activeDttTemplate { name } }',
      'query List($n: Int = 2) { dttTemplates(first: $n) { nodes { name isActive } } }',
      'query Me { viewer { username } }',
    ];
    const step = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          query: fc.constantFrom(...queries),
          variables: fc.constantFrom({}, { n: 1 }, { n: 3 }),
          method: fc.constantFrom('GET' as const, 'POST' as const),
          isBob: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.constant('forget' as const) },
      { weight: 1, arbitrary: fc.nat({ max: 2 }) },
    );
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), async (steps) => {
      for (const each of steps) {
        if (each === 'forget') for (const { token } of [alice, bob]) await forget(token);
        else if (typeof each === 'number')
          await ask({
            query: `mutation { activateTemplate(template: { databaseId: ${alice.dttTemplates[each]} }) { scheduleTypeChanged } }`,
          });
        else {
          const { query, variables, method, isBob } = each;
          const asking = { method, token: isBob ? bob.token : alice.token };
          const short = { ...byHash(query), variables };
          let { body } = await ask(short, asking);
          if (body.errors) {
            expect(body).toEqual(notFound);
            ({ body } = await ask({ query, ...short }, asking));
            // Registered from now on, by whatever method it is asked for.
            for (const next of ['GET', 'POST'] as const)
              expect((await ask(short, { ...asking, method: next })).body).toEqual(body);
          }
          expect(body).toEqual((await ask({ query, variables }, asking)).body);
          expect(body.data).toBeDefined();
        }
      }
    });
    await fc.assert(property, fuzzed(4));
  },
  fuzzTimeout,
);
