/** Persisted operations, which requests name instead of sending their text. */

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { SetupError } from '../../src/errors.ts';
import { createDocuments } from '../../src/graphql/documents.ts';
import { createPersistedOperations, loadPersistedOperations } from '../../src/graphql/persisted.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { openBeside, openTestGateway, type TestGateway } from '../support/gateway.ts';

const viewer = 'query Viewer { viewer { username } }';
const first = 'query First($n: Int!) { dttDevices(first: $n) { nodes { bubbleId } } }';
const id = createHash('sha256').update(viewer).digest('hex');

const onlyPersisted =
  'Only persisted operations are run: name one by documentId or extensions.persistedQuery.sha256Hash, and send no query';

let folder: string;
let open: TestGateway;
let only: TestGateway;
let alice: Account;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-persisted-'));
  const file = join(folder, 'persisted.json');
  await writeFile(file, JSON.stringify({ [id]: viewer, first }));
  open = await openTestGateway(undefined, { settings: { PERSISTED_OPERATIONS_FILE: file } });
  only = await openTestGateway(await openBeside(open.database), {
    settings: {
      PERSISTED_OPERATIONS: 'only',
      PERSISTED_OPERATIONS_FILE: file,
    },
  });
  alice = await createAccount(open.database.client, 'alice');
});
afterAll(async () => {
  await only?.close();
  await open?.close();
  await rm(folder, { recursive: true, force: true });
});

const byHash = (sha256Hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash } } });

/** Posts three times: the first is executed, and the others may come from the cache. The responses must be equal. */
async function post(gateway: TestGateway, body: object, token: string | undefined = alice.token) {
  const responses = [];
  for (let time = 0; time < 3; time++) {
    const response = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/graphql-response+json',
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    });
    responses.push({ status: response.status, ...(await response.json()) });
  }
  for (const response of responses) expect(response).toEqual(responses[0]);
  return responses[0];
}

const rejected = (message: string) => ({
  status: 400,
  errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }],
});

describe('a persisted operation', () => {
  it.each([
    ['its documentId', { documentId: id }],
    ['its hash', byHash(id)],
    ['its hash beside an empty query', { query: '', ...byHash(id) }],
  ])('is run by %s', async (_, naming) => {
    for (const gateway of [open, only])
      expect(await post(gateway, naming)).toEqual({ status: 200, data: { viewer: { username: 'alice' } } });
  });

  it('is rejected when its id is unknown, also when objects inherit a property of that name', async () => {
    for (const gateway of [open, only]) {
      for (const documentId of ['__proto__', 'constructor'])
        expect(await post(gateway, { documentId })).toEqual(
          rejected(`There is no persisted operation with the id "${documentId}"`),
        );
    }
    const unknown = {
      message: 'PersistedQueryNotSupported',
      extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
    };
    expect(await post(only, byHash('0'.repeat(64)))).toEqual({ status: 200, errors: [unknown] });
  });

  it('is rejected when its documentId is not a string', async () => {
    for (const documentId of [{ toString: 1 }, 1])
      expect(await post(only, { documentId })).toEqual(rejected('documentId must be a string'));
  });

  it('is rejected with 401 without a token, whether it exists or not', async () => {
    for (const gateway of [open, only]) {
      for (const documentId of [id, 'nothing', { toString: 1 }]) {
        expect(await post(gateway, { documentId }, '')).toEqual({
          status: 401,
          errors: [
            {
              message: 'Unauthorized: the Authorization header must have the form Bearer TOKEN',
              extensions: { code: 'UNAUTHENTICATED' },
            },
          ],
        });
      }
    }
  });
});

it('a response that was cached for an id is not sent after the file has another operation, or none, for the id', async () => {
  const other = 'query Viewer { viewer { id username } }';
  const documentId = 'changing';
  const reread = async (operations: object) => {
    await writeFile(join(folder, 'changing.json'), JSON.stringify(operations));
  };
  await writeFile(join(folder, 'changing.json'), JSON.stringify({ [documentId]: viewer }));
  const gateway = await openTestGateway(await openBeside(open.database), {
    settings: { PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: join(folder, 'changing.json') },
  });
  const ask = async (method: 'GET' | 'POST') => {
    const headers = { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' };
    const response =
      method === 'GET'
        ? await fetch(`${gateway.url}/graphql?documentId=${documentId}`, { headers })
        : await fetch(`${gateway.url}/graphql`, { method, headers, body: JSON.stringify({ documentId }) });
    return response.json();
  };
  try {
    for (const method of ['GET', 'GET', 'POST', 'POST', 'POST'] as const)
      expect(await ask(method)).toEqual({ data: { viewer: { username: 'alice' } } });
    await reread({ [documentId]: other });
    const changed = { data: { viewer: { id: expect.any(String), username: 'alice' } } };
    await vi.waitFor(async () => expect(await ask('GET')).toEqual(changed), 20_000);
    expect(await ask('POST')).toEqual(changed);
    await reread({ another: other });
    const gone = { errors: [{ message: expect.stringContaining('no persisted operation') }] };
    await vi.waitFor(async () => expect(await ask('POST')).toMatchObject(gone), 20_000);
    expect(await ask('GET')).toMatchObject(gone);
  } finally {
    await gateway.close();
  }
});

describe('an operation sent as text', () => {
  it.each([
    ['the text of a persisted operation', { query: viewer }],
    ['no text', {}],
  ])('is rejected where only persisted operations are allowed: %s', async (_, body) => {
    expect(await post(only, body)).toEqual(rejected(onlyPersisted));
  });
});

describe('the file of persisted operations', () => {
  const load = async (name: string, text: string) => {
    const file = join(folder, name);
    await writeFile(file, text);
    const config = readConfig({ PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: file });
    const documents = createDocuments(config);
    const { operations } = loadPersistedOperations(config, documents);
    return createPersistedOperations({ config, file: { operations } });
  };

  it.each([
    ['as Relay and the client preset write it', 'plain.json', JSON.stringify({ [id]: viewer }), id],
    [
      'as Apollo writes it',
      'apollo.json',
      JSON.stringify({
        format: 'apollo-persisted-query-manifest',
        version: 1,
        operations: [{ id, name: 'Viewer', type: 'query', body: viewer }],
      }),
      id,
    ],
    [
      'in GraphQL, by the names of its operations',
      'all.graphql',
      `${first} query Viewer { viewer { ...F } } fragment F on User { username }`,
      'Viewer',
    ],
  ])('is accepted %s', async (_, name, text, documentId) => {
    expect((await load(name, text)).find({ documentId }, { id: 1 })).toMatch(/^query Viewer\b/);
  });

  it.each([
    ['is not JSON', 'a.json', '{', /cannot be used: .* in JSON at position 1/],
    ['is not a manifest', 'b.json', '[1]', /cannot be used: it is not a manifest of documents by id$/],
    ['is not GraphQL', 'c.graphql', '{', /cannot be used: Syntax Error/],
    [
      'has an operation without a name',
      'd.graphql',
      '{ viewer { id } }',
      /an operation has no name to be asked for by$/,
    ],
    [
      'has an invalid operation',
      'e.json',
      JSON.stringify({ x: '{ nobody }' }),
      /x cannot be run: Cannot query field "nobody"/,
    ],
  ])('prevents the start when it %s', async (_, name, text, message) => {
    const failing = load(name, text);
    await expect(failing).rejects.toThrow(SetupError);
    await expect(failing).rejects.toThrow(message);
  });

  it('prevents the start when it is missing, or is needed but not set', () => {
    const start = (settings: Record<string, string>) => {
      const config = readConfig(settings);
      return loadPersistedOperations(config, createDocuments(config));
    };
    expect(() => start({ PERSISTED_OPERATIONS: 'only' })).toThrow(
      new SetupError('PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.'),
    );
    expect(() => start({ PERSISTED_OPERATIONS_FILE: '/nowhere/a.json' })).toThrow(
      new SetupError(
        'PERSISTED_OPERATIONS_FILE /nowhere/a.json cannot be used: ENOENT: no such file or directory',
      ),
    );
  });
});
