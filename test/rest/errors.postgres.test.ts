/** Every error of the REST API (docs/rest.md#errors). */

import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { revokeToken } from '../../src/auth/tokens.ts';
import type { ChangeFeed } from '../../src/database/feed/changeFeed.ts';
import { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import { createSql, type Sql } from '../../src/database/reader/sql.ts';
import { openExchange } from '../../src/http/exchange.ts';
import { send } from '../../src/http/response.ts';
import { createRestHandler } from '../../src/rest/handler.ts';
import { routes } from '../../src/rest/routes.ts';
import { executions } from '../../src/schema/compile.ts';
import { createContext } from '../../src/schema/context.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { nobodyListens } from '../support/exchanges.ts';
import {
  graphqlOnce,
  openBeside,
  openTestGateway,
  postJson,
  rest,
  type TestGateway,
} from '../support/gateway.ts';
import { idsOf, listOf, pathsFor, recordOf, withId } from '../support/restResponses.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterAll(() => gateway?.close());

const ask = (path: string, options?: RequestInit) => rest(gateway, alice.token, path, options);
const errorBody = (error: string) => ({ ok: false, error });
const notFound: Readonly<Record<string, string>> = {
  '/users/{id}': 'User not found',
  '/dtt/{id}': 'DTT device not found',
  '/dtt/templates/{id}': 'DTT template not found',
  '/dtt/settings/{id}': 'DTT template not found',
  '/dtt/sessions/{id}': 'DTT session not found',
  '/lkbx/{id}': 'LKBX device not found',
  '/lkbx/templates/{id}': 'Lock template not found',
  '/lkbx/sessions/{id}': 'Lock session not found',
  '/lkbx/session/{id}': 'Lock session not found',
  '/ossm/{id}': 'OSSM device not found',
};

const invalidIds = [
  '0',
  '00',
  '01',
  '+1',
  '-1',
  '-0',
  '1e3',
  '0x10',
  '1.0',
  '1,0',
  '%201',
  '1%20',
  '%30',
  '%2531',
  '%3',
  '%3A',
  '１',
  'x',
];
const tooHighIds = [2 ** 31, 2 ** 53, `1${'0'.repeat(400)}`].map(String);

describe('a token', () => {
  const expectUnauthorized = async (path: string, options: RequestInit = {}, challenge = 'Bearer') => {
    const { status, headers, body } = await rest(gateway, undefined, path, options);
    expect(status).toBe(401);
    expect(headers.get('WWW-Authenticate')).toBe(challenge);
    expect(body).toEqual(errorBody('Unauthorized'));
  };
  const malformed = 'the Authorization header must have the form Bearer TOKEN';
  const invalid = 'the token is unknown or revoked';

  it.each(routes)(
    'is checked before the id, the parameters and the method: $method $path',
    async ({ method, path }) => {
      await expectUnauthorized(withId(path, 'x'), { method });
      await expectUnauthorized(`${withId(path, '1')}?limit=x&offset=x`, {
        method: method === 'GET' ? 'DELETE' : 'PUT',
      });
    },
  );

  it.each(['', '/', '/nowhere', '/dtt/1/2'])('is required for the unknown path %j', (path) =>
    expectUnauthorized(path),
  );

  it.each([
    ['in another scheme', () => `Basic ${alice.token}`, malformed],
    ['without a scheme', () => alice.token, malformed],
    ['that is missing', () => 'Bearer', malformed],
    ['that is empty', () => 'Bearer ', malformed],
    ['with text after it', () => `Bearer ${alice.token} x`, malformed],
    ['cut short', () => `Bearer ${alice.token.slice(0, -1)}`, invalid],
    ['that was never issued', () => `Bearer dvt_${'A'.repeat(43)}`, invalid],
    ['with a NUL escaped', () => `Bearer ${alice.token}%00`, invalid],
  ])('%s is rejected by both APIs with the reason', async (_, authorization, problem) => {
    const headers = { Authorization: authorization() };
    const challenge = `Bearer error="invalid_token", error_description="${problem}"`;
    await expectUnauthorized('/users/me', { headers }, challenge);
    const response = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: '{"query":"{ viewer { id } }"}',
    });
    expect(response.headers.get('WWW-Authenticate')).toBe(challenge);
    expect((await response.json()).errors).toEqual([
      { message: `Unauthorized: ${problem}`, extensions: { code: 'UNAUTHENTICATED' } },
    ]);
  });

  it('is not required from a browser that opens /api/v1, which is redirected to the reference', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const open = async (path: string, headers: Record<string, string>, method = 'GET') => {
      const url = `${gateway.url}/api/v1${path}`;
      const response = await fetch(url, { method, headers, redirect: 'manual' });
      await response.text();
      return [response.status, response.headers.get('Location')];
    };
    for (const target of ['', '?x=1']) expect(await open(target, { Accept: accept })).toEqual([302, '/docs']);
    for (const path of ['/', '/dtt']) expect(await open(path, { Accept: accept })).toEqual([401, null]);
    expect(await open('', { Accept: `application/json, ${accept}` })).toEqual([401, null]);
    expect(await open('', { Accept: accept }, 'POST')).toEqual([401, null]);
    expect(await open('', { Accept: accept, Authorization: 'Bearer x' })).toEqual([401, null]);
    const withoutDocs = await openTestGateway(await openBeside(gateway.database), {
      settings: { INTROSPECTION: 'off' },
    });
    const response = await fetch(`${withoutDocs.url}/api/v1`, {
      headers: { Accept: accept },
      redirect: 'manual',
    });
    expect(response.status).toBe(401);
    await withoutDocs.close();
  });

  it('is accepted whatever the case of the scheme', async () => {
    for (const scheme of ['bearer', 'BEARER']) {
      const headers = { Authorization: `${scheme} ${alice.token}` };
      expect((await rest(gateway, undefined, '/users/me', { headers })).status).toBe(200);
    }
  });

  it('is rejected after it was revoked', async () => {
    const { client } = gateway.database;
    const { token, userId } = await createAccount(client, 'carol');
    expect((await rest(gateway, token, '/users/me')).status).toBe(200);
    const { id } = await client.apiToken.findFirstOrThrow({ where: { userId } });
    await revokeToken(client, id);
    // The change of another connection reaches the gateway a moment later.
    await expect.poll(async () => (await rest(gateway, token, '/users/me')).status).toBe(401);
    const challenge = `Bearer error="invalid_token", error_description="${invalid}"`;
    await expectUnauthorized('/users/me', { headers: { Authorization: `Bearer ${token}` } }, challenge);
  });
});

describe('an id in a path', () => {
  it('is tested on every path that has one', () => {
    const withIds = routes.filter(({ path, method }) => method === 'GET' && path.includes('{id}'));
    expect(withIds.map(({ path }) => path).sort()).toEqual(Object.keys(notFound).sort());
  });

  it.each(Object.keys(notFound))(
    'gets a 400 when it is not a canonical integer of at least 1: %s',
    async (path) => {
      for (const id of invalidIds) {
        const { status, body } = await ask(withId(path, id));
        expect({ id, status, body }).toEqual({ id, status: 400, body: errorBody('Invalid ID') });
      }
    },
  );

  it('may have percent-encoded digits, as in a query string', async () => {
    const [first] = alice.dttDevices;
    const encoded = [...String(first)].map((digit) => `%3${digit}`).join('');
    const whole = await ask(`/dtt/${first}`);
    const { status, body } = await ask(`/dtt/${encoded}`);
    expect({ status, body }).toEqual({ status: 200, body: whole.body });
    expect(await ask('/dtt/%32147483647')).toMatchObject({
      status: 404,
      body: errorBody('DTT device not found'),
    });
    const path = `/dtt/templates/${alice.dttTemplates[0]}`.replace(/\d/g, '%3$&');
    expect((await postJson(gateway, alice.token, path, { isActive: true })).status).toBe(200);
    const { client } = gateway.database;
    await client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: null } });
  });

  it.each(Object.entries(notFound))(
    'gets a 404 when the viewer has no such record: %s',
    async (path, message) => {
      const foreign = pathsFor(path, bob);
      const missing = [2 ** 31 - 1, ...tooHighIds].map((id) => withId(path, id));
      for (const each of [...foreign, ...missing]) {
        const { status, body } = await ask(each);
        expect({ path: each, status, body }).toEqual({ path: each, status: 404, body: errorBody(message) });
      }
    },
  );
});

describe('a page', () => {
  const lists = routes.filter(({ isList }) => isList).map(({ path }) => path);
  const odd = ['', 'x', '-1', '+1', '01', '1.0', '1e1', '%201', '１', 'null'];

  it.each(lists)('must have a limit from 1 to 100: %s', async (path) => {
    for (const query of [
      ...[...odd, '0', '101', ...tooHighIds].map((limit) => `limit=${limit}`),
      'limit=1&limit=1',
    ]) {
      const { status, body } = await ask(`${path}?${query}`);
      expect({ query, status, body }).toEqual({
        query,
        status: 400,
        body: errorBody('limit must be an integer from 1 to 100'),
      });
    }
  });

  it.each(lists)('must have an offset of at least 0: %s', async (path) => {
    for (const query of [...odd.map((offset) => `offset=${offset}`), 'offset=0&offset=1']) {
      const { status, body } = await ask(`${path}?${query}`);
      expect({ query, status, body }).toEqual({
        query,
        status: 400,
        body: errorBody('offset must be an integer of at least 0'),
      });
    }
  });

  it.each(lists)('is empty when its offset is far beyond the end: %s', async (path) => {
    for (const offset of [2 ** 31 - 1, ...tooHighIds]) {
      const { data, pagination } = listOf(await ask(`${path}?offset=${offset}`));
      expect(data).toEqual([]);
      expect(pagination).toEqual({ limit: 50, offset: Number(offset) });
    }
  });

  it('echoes the exact digits of an offset beyond the safe integers', async () => {
    const offset = '9007199254740993';
    const response = await fetch(`${gateway.url}/api/v1/dtt?offset=${offset}`, {
      headers: { Authorization: `Bearer ${alice.token}` },
    });
    expect(await response.text()).toBe(
      `{"ok":true,"data":{"data":[],"pagination":{"limit":50,"offset":${offset}}}}`,
    );
  });
});

describe('a path', () => {
  it.each([
    '',
    '/',
    '/nowhere',
    '/DTT',
    '/dtt/1/2',
    '/dtt/templates/1/',
    '/users/',
    '/users/me/',
    '/dtt/',
    '/users/1/dtt',
    '//dtt',
    '/..%2fgraphql',
  ])('gets a 404 when it is unknown: %j', async (path) => {
    const { status, body } = await ask(path);
    expect(status).toBe(404);
    expect(body).toEqual(errorBody('Not found'));
  });

  it.each([...new Set(routes.map(({ path }) => path))])(
    'gets a 405 with the allowed methods for any other method: %s',
    async (path) => {
      const allowed = routes
        .filter((route) => route.path === path)
        .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      const others = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
        (method) => !allowed.includes(method),
      );
      for (const method of others) {
        const { status, headers, body } = await ask(withId(path, 'x'), { method });
        expect({ method, status, body }).toEqual({
          method,
          status: 405,
          body: errorBody('Method not allowed'),
        });
        expect(headers.get('Allow')).toBe(allowed.join(', '));
      }
    },
  );
});

it('a path of an activation that ends with a slash is an unknown path, and not an invalid id', async () => {
  const { status, body } = await postJson(gateway, alice.token, '/dtt/templates/', { isActive: true });
  expect([status, body]).toEqual([404, errorBody('Not found')]);
});

describe('the body of an activation', () => {
  const json = { 'Content-Type': 'application/json' };
  const right = JSON.stringify({ isActive: true });
  const path = () => withId('/dtt/templates/{id}', alice.dttTemplates[0]);
  const active = async () => (await ask('/dtt/templates/active')).body.data;

  it.each<[string, RequestInit]>([
    ['absent', {}],
    ['absent although Content-Type is JSON', { headers: json }],
    ['not JSON', { headers: json, body: '{ isActive: true }' }],
    ['cut short', { headers: json, body: right.slice(0, -1) }],
    ['not UTF-8', { headers: json, body: Buffer.from('{"isActive":true,"x":"\xff"}', 'latin1') }],
    ['sent without a Content-Type', { body: Buffer.from(right) }],
    ['sent as text', { headers: { 'Content-Type': 'text/plain' }, body: right }],
    [
      'sent as a form',
      { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'isActive=true' },
    ],
    [
      'sent with a media type that only begins with application/json',
      { headers: { 'Content-Type': 'application/json-seq' }, body: right },
    ],
    ...[
      '{}',
      '{"isActive":false}',
      '{"isActive":"true"}',
      '{"isActive":1}',
      '{"isActive":null}',
      '{"isActive":[true]}',
      '{"isactive":true}',
      '{"__proto__":{"isActive":true}}',
      '[{"isActive":true}]',
      '[]',
      'true',
      'null',
      '"isActive"',
      '1',
    ].map((body): [string, RequestInit] => [body, { headers: json, body }]),
  ])('is rejected, and nothing changes, when it is %s', async (_, options) => {
    const { status, body } = await ask(path(), { method: 'POST', ...options });
    expect(status).toBe(400);
    expect(body).toEqual(errorBody('Request body must include { isActive: true }'));
    expect(await active()).toBeNull();
  });

  it.each([
    ['application/x-www-form-urlencoded', 'isActive=true'],
    ['text/plain', right],
  ])(
    'gets a response that names the media type that is accepted, when it is sent as %s',
    async (type, body) => {
      const headers = { 'Content-Type': type };
      const response = await ask(path(), { method: 'POST', headers, body });
      expect([response.status, response.headers.get('Accept')]).toEqual([400, 'application/json']);
      const asJson = await ask(path(), { method: 'POST', headers: json, body: '{}' });
      expect([asJson.status, asJson.headers.get('Accept')]).toEqual([400, null]);
    },
  );

  it('is checked before the id', async () => {
    for (const id of [...invalidIds, ...tooHighIds, bob.dttTemplates[0]]) {
      const { body } = await postJson(gateway, alice.token, withId('/dtt/templates/{id}', id), {});
      expect(body).toEqual(errorBody('Request body must include { isActive: true }'));
    }
  });

  it('is followed by the check of the id when it is valid', async () => {
    for (const id of [...invalidIds, ...tooHighIds, 2 ** 31 - 1, ...bob.dttTemplates]) {
      const response = await postJson(gateway, alice.token, withId('/dtt/templates/{id}', id), {
        isActive: true,
      });
      expect({ id, status: response.status, body: response.body }).toEqual({
        id,
        status: 404,
        body: errorBody('Template not found or not owned by user'),
      });
    }
    expect(await active()).toBeNull();
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json ;charset="UTF-8"'])(
    'may be sent as %s',
    async (type) => {
      const { client } = gateway.database;
      const response = await ask(path(), { method: 'POST', headers: { 'Content-Type': type }, body: right });
      expect(recordOf(response).isActive).toBe(true);
      await client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: null } });
    },
  );

  it('may have further fields, which are ignored', async () => {
    const { client } = gateway.database;
    const response = await postJson(gateway, alice.token, path(), { isActive: true, name: 'renamed' });
    expect(recordOf(response)).toMatchObject({ isActive: true, name: 'Program 0 of alice' });
    await client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: null } });
  });

  it.each([
    ['a byte', 64 * 1024 + 1],
    ['far', 4 * 1024 * 1024],
  ])('is rejected when it is %s over the size limit', async (_, size) => {
    const padded = right.padEnd(size, ' ');
    // With Content-Length, and in chunks without it.
    const chunked = new Blob([padded]).stream();
    for (const content of [{ body: padded }, { body: chunked, duplex: 'half' as const }]) {
      const { status, body } = await ask(path(), { method: 'POST', headers: json, ...content });
      expect(status).toBe(413);
      expect(body).toEqual(errorBody('Request body too large'));
    }
    expect(await active()).toBeNull();
  });
});

describe('targetUserId', () => {
  /** Sends the request twice, so that the second response may come from the cache. */
  const askWith = async (path: string, method: string, targetUserId: string) => {
    const target = `${withId(path, alice.dttTemplates[0])}?targetUserId=${targetUserId}`;
    const post = { method, headers: { 'Content-Type': 'application/json' }, body: '{"isActive":true}' };
    const responses = [];
    for (let time = 0; time < 2; time++) responses.push(await ask(target, method === 'POST' ? post : {}));
    expect(responses[1]?.body).toEqual(responses[0]?.body);
    return { status: responses[1]?.status, body: responses[1]?.body };
  };

  it.each(routes)(
    'must be the viewer’s id, or the request is rejected: $method $path',
    async ({ method, path }) => {
      const { user } = gateway.database.client;
      const where = { id: alice.userId };
      const own = await askWith(path, method, String(alice.userId));
      expect([200, 404]).toContain(own.status);
      await user.update({ where, data: { activeTemplateId: null } });
      for (const id of [String(bob.userId), '999', '2147483648', '9'.repeat(30)]) {
        expect(await askWith(path, method, id)).toEqual({
          status: 403,
          body: errorBody(`Forbidden: user ${id} is not accessible`),
        });
      }
      for (const text of ['', '0', '01', '-1', 'x', '1e3', 'null', `%20${alice.userId}`, '%31x'])
        expect(await askWith(path, method, text)).toEqual({ status: 400, body: errorBody('Invalid ID') });
      // The request is rejected if any of several values is wrong.
      expect((await askWith(path, method, `${alice.userId}&targetUserId=${bob.userId}`)).status).toBe(403);
      // Nothing was activated, and the cached response is that with the viewer's own id.
      expect(await user.findUnique({ where })).toMatchObject({ activeTemplateId: null });
      expect((await askWith(path, method, String(alice.userId))).status).toBe(own.status);
    },
  );

  it('is checked before the id in the path, and after the body of an activation', async () => {
    expect(await ask(`/dtt/x?targetUserId=${bob.userId}`)).toMatchObject({ status: 403 });
    const wrong = await postJson(gateway, alice.token, `/dtt/templates/x?targetUserId=${bob.userId}`, {});
    expect(wrong).toMatchObject({
      status: 400,
      body: { error: 'Request body must include { isActive: true }' },
    });
  });
});

describe('a field that fails', () => {
  const failing = new Error('the database is away');
  const context = createContext(
    {
      run: () => Promise.reject(failing),
      findMany: () => Promise.reject(failing),
      count: () => Promise.reject(failing),
      write: () => Promise.reject(failing),
      writeAndFind: () => Promise.reject(failing),
    } satisfies Sql,
    { id: 1, tokenId: 1 },
    undefined,
  );

  it.each(routes)('makes the whole response an error and is not null in it: $method $path', async (route) => {
    const { data, errors } = await route.run({ id: 1, limit: 1, offset: 0 }, context);
    // Without its error, the null would look like a record that does not exist.
    expect(data).toEqual({ data: null });
    expect(errors?.map(({ message }) => message)).toEqual([failing.message]);
    const handler = createRestHandler({ createContext: () => context, routes: [route] });
    const server = createServer(async (request, response) => {
      const exchange = openExchange(request, response, nobodyListens);
      const task = await handler(exchange, { id: 1, tokenId: 1 });
      if ('status' in task) return send(exchange, task);
      const made = await task.prepare().run();
      if ('response' in made) send(exchange, made.response);
      else if ('body' in made) send(exchange, made);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const response = await fetch(`http://127.0.0.1:${port}/api/v1${withId(route.path, 1)}`, {
        method: route.method,
        ...(route.body && {
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(route.body.values),
        }),
      });
      expect(response.status).toBe(500);
      expect(await response.json()).toEqual(errorBody('Internal server error'));
    } finally {
      server.close();
    }
  });
});

describe('an internal error', () => {
  it('has no details in the response, and is logged', async () => {
    const { pool } = gateway.database;
    const before = gateway.log.length;
    await pool.query('ALTER TABLE "DttDevice" RENAME TO "Elsewhere"');
    try {
      const { status, body } = await ask('/dtt');
      expect(status).toBe(500);
      expect(body).toEqual(errorBody('Internal server error'));

      for (const time of ['first', 'second']) {
        const before = executions.compiled + executions.interpreted;
        const { data, errors } = await graphqlOnce(gateway, alice.token, '{ dttDevices { totalCount } }');
        expect(data, time).toEqual({ dttDevices: null });
        expect(errors).toEqual([
          {
            message: 'Internal server error',
            locations: [{ line: 1, column: 3 }],
            path: ['dttDevices'],
            extensions: { code: 'INTERNAL_SERVER_ERROR' },
          },
        ]);
        // A database that fails is not asked again.
        expect(executions.compiled + executions.interpreted - before).toBe(1);
      }

      const lines = gateway.log.slice(before);
      expect(lines).toHaveLength(3);
      for (const line of lines) expect(line).toMatch(/DttDevice/);
    } finally {
      await pool.query('ALTER TABLE "Elsewhere" RENAME TO "DttDevice"');
    }
    expect(idsOf(listOf(await ask('/dtt')).data)).toEqual(alice.dttDevices);
  });

  it('has no details in the response when the database cannot be reached', async () => {
    // A second gateway over the same database, with a pool of its own that the test can end.
    const pool = new pg.Pool(gateway.database.pool.options);
    const client = new PrismaClient({ adapter: new PrismaPg(pool) });
    // Without a feed, no response comes from the cache, which would hide that the database cannot be reached.
    const silentFeed: ChangeFeed = {
      kind: 'notify',
      listening: false,
      reconnects: 0,
      subscribe: () => () => {},
      close: async () => {},
    };
    const other = await openTestGateway({
      client,
      pool,
      sql: createSql(pool),
      embedded: false,
      direct: gateway.database.direct,
      failure: new Promise(() => {}),
      openChangeFeed: async () => silentFeed,
      close: () => client.$disconnect(),
    });
    try {
      expect((await rest(other, alice.token, '/users/me')).status).toBe(200);
      await pool.end();

      for (const path of ['/users/me', '/dtt?limit=0', '/nowhere']) {
        const { status, headers, body } = await rest(other, alice.token, path);
        expect(status).toBe(500);
        expect(headers.get('Content-Type')).toBe('application/json; charset=utf-8');
        expect(body).toEqual(errorBody('Internal server error'));
      }
      const { status, data, errors } = await graphqlOnce(other, alice.token, '{ viewer { username } }');
      expect(status).toBe(500);
      expect(data).toBeUndefined();
      expect(errors).toEqual([
        { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } },
      ]);
      expect(other.log).toHaveLength(4);
      for (const line of other.log) expect(line).toMatch(/after calling end on the pool/);

      expect(await fetch(`${other.url}/healthz`)).toMatchObject({ status: 200 });
      expect(await fetch(`${other.url}/readyz`)).toMatchObject({ status: 503 });
    } finally {
      await other.close();
    }
  });
});

it.each(Object.keys(notFound))(
  'the template %s itself as a path gets a 400, since {id} is not a valid id',
  async (path) => {
    // `get` with a path sends the braces unchanged, where a URL would percent-encode them.
    // The type of `once` does not tell the types of the arguments of an event.
    const [response] = (await once(
      get(`${gateway.url}/`, { path: `/api/v1${path}`, headers: { Authorization: `Bearer ${alice.token}` } }),
      'response',
    )) as [IncomingMessage];
    expect(response.statusCode).toBe(400);
    expect(JSON.parse(await text(response))).toEqual(errorBody('Invalid ID'));
  },
);
