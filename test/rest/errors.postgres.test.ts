/** Every error of the REST API (docs/rest.md#errors). */

import { describe, expect, it } from 'vitest';
import type { Sql } from '../../src/database/reader/sql.ts';
import { routes } from '../../src/rest/routes.ts';
import { createContext } from '../../src/schema/context.ts';
import { graphqlOnce, postJson, rest } from '../support/gateway.ts';
import { listOf, pathsFor, recordOf, withId } from '../support/restResponses.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);

const ask = (path: string, options?: RequestInit) => rest(gateway, alice.token, path, options);
const errorBody = (error: string) => ({ ok: false, error });
async function expectError(status: number, error: string, path: string, options?: RequestInit) {
  const response = await ask(path, options);
  expect({ path, status: response.status, body: response.body }).toEqual({
    path,
    status,
    body: errorBody(error),
  });
  return response;
}

/** The paths with an id, each with a path of the same record type that the message is about. */
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
const invalidIds =
  '0 00 01 +1 -1 -0 1e3 0x10 1.0 1,0 %201 1%20 %30 %2531 %3 %3A １ __proto__ NaN {id} %00'.split(' ');
const tooHighIds = [2 ** 31, 2 ** 53, `1${'0'.repeat(400)}`].map(String);

describe('a token', () => {
  const malformed = 'the Authorization header must have the form Bearer TOKEN, with one word after Bearer';
  const expectUnauthorized = async (path: string, options: RequestInit = {}, challenge = 'Bearer') => {
    const { status, headers, body } = await rest(gateway, undefined, path, options);
    expect([status, headers.get('WWW-Authenticate'), body]).toEqual([
      401,
      challenge,
      errorBody('Unauthorized'),
    ]);
  };
  const challengeFor = (problem: string) => `Bearer error="invalid_token", error_description="${problem}"`;

  it('is checked before the path, the id, the parameters and the method', async () => {
    for (const { method, path } of routes) await expectUnauthorized(withId(path, 'x'), { method });
    await expectUnauthorized('/dtt/1?limit=x&offset=x', { method: 'DELETE' });
    for (const path of ['', '/', '/nowhere', '/dtt/1/2']) await expectUnauthorized(path);
  });

  it.each([
    ['in another scheme', () => `Basic ${alice.token}`, malformed],
    ['after two schemes', () => `Bearer Bearer ${alice.token}`, malformed],
  ])('%s is rejected by both APIs with the reason', async (_, authorization, problem) => {
    const headers = { Authorization: authorization() };
    await expectUnauthorized('/users/me', { headers }, challengeFor(problem));
    const response = await graphqlOnce(gateway, undefined, '{ viewer { id } }', {}, headers);
    expect(response.headers.get('WWW-Authenticate')).toBe(challengeFor(problem));
    expect(response.errors).toEqual([
      { message: `Unauthorized: ${problem}`, extensions: { code: 'UNAUTHENTICATED' } },
    ]);
  });
});

describe('an id in a path', () => {
  it('is tested on every path that has one', () => {
    const withIds = routes.filter(({ path, method }) => method === 'GET' && path.includes('{id}'));
    expect(withIds.map(({ path }) => path).sort()).toEqual(Object.keys(notFound).sort());
  });

  it.each(Object.entries(notFound))(
    'has to be valid, and of a record of the viewer: %s',
    async (path, message) => {
      for (const id of invalidIds) await expectError(400, 'Invalid ID', withId(path, id));
      const missing = [2 ** 31 - 1, '%39%398', ...tooHighIds].map((id) => withId(path, id));
      for (const each of [...pathsFor(path, bob), ...missing]) await expectError(404, message, each);
    },
  );
});

describe('a page', () => {
  const lists = routes.filter(({ isList }) => isList).map(({ path }) => path);
  const odd = ['', 'x', '-1', '+1', '01', '1.0', '1e1', '%201', '１', 'null'];

  it.each(lists)('must have a limit from 1 to 100 and an offset of at least 0: %s', async (path) => {
    for (const limit of [...odd, '0', '101', ...tooHighIds, '1&limit=1'])
      await expectError(400, 'limit must be an integer from 1 to 100', `${path}?limit=${limit}`);
    for (const offset of [...odd, '0&offset=1'])
      await expectError(400, 'offset must be an integer of at least 0', `${path}?offset=${offset}`);
    for (const offset of [2 ** 31 - 1, ...tooHighIds])
      expect(listOf(await ask(`${path}?offset=${offset}`))).toEqual({
        data: [],
        pagination: { limit: 50, offset: Number(offset) },
      });
  });

  it('echoes the exact digits of an offset beyond the safe integers', async () => {
    const offset = '9007199254740993';
    const headers = { Authorization: `Bearer ${alice.token}` };
    const response = await fetch(`${gateway.url}/api/v1/dtt?offset=${offset}`, { headers });
    const data = `{"data":[],"pagination":{"limit":50,"offset":${offset}}}`;
    expect(await response.text()).toBe(`{"ok":true,"data":${data}}`);
  });
});

describe('a path', () => {
  const unknown = [
    ...['', '/', '/nowhere', '/DTT', '/dtt/1/2', '/dtt/templates/1/', '/users/', '/users/me/', '/dtt/'],
    ...['/users/1/dtt', '//dtt', '/..%2fgraphql'],
  ];
  it('gets a 404 when it is unknown', async () => {
    for (const path of unknown) await expectError(404, 'Not found', path);
  });

  it('gets a 405 with the allowed methods for any other method', async () => {
    for (const path of new Set(routes.map((route) => route.path))) {
      const allowed = routes
        .filter((route) => route.path === path)
        .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (allowed.includes(method)) continue;
        const { headers } = await expectError(405, 'Method not allowed', withId(path, 'x'), { method });
        expect(headers.get('Allow')).toBe(allowed.join(', '));
      }
    }
  });
});

describe('the body of an activation', () => {
  const json = { 'Content-Type': 'application/json' };
  const right = JSON.stringify({ isActive: true });
  const path = () => withId('/dtt/templates/{id}', alice.dttTemplates[0]);
  const mustInclude = 'Request body must include { isActive: true }';
  const active = async () => (await ask('/dtt/templates/active')).body.data;
  const deactivate = () =>
    gateway.database.client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: null } });

  const wrong = [
    ...['{}', '{"isActive":false}', '{"isActive":"true"}', '{"__proto__":{"isActive":true}}'],
    ...['[{"isActive":true}]', 'true', 'null'],
  ];
  const notJson = ['{ isActive: true }', right.slice(0, -1)];
  it.each<[string, RequestInit]>([
    ['absent', {}],
    ['absent although Content-Type is JSON', { headers: json }],
    ['not UTF-8', { headers: json, body: Buffer.from('{"isActive":true,"x":"\xff"}', 'latin1') }],
    ['sent without a Content-Type', { body: Buffer.from(right) }],
    ['sent as another type', { headers: { 'Content-Type': 'application/json-seq' }, body: right }],
    ...[...wrong, ...notJson].map((body): [string, RequestInit] => [body, { headers: json, body }]),
  ])('is rejected, and nothing changes, when it is %s', async (_, options) => {
    const { headers } = await expectError(400, mustInclude, path(), { method: 'POST', ...options });
    // So a client can tell that its body was no JSON from what the message says.
    expect(headers.get('Accept')).toBe(wrong.includes(String(options.body)) ? null : 'application/json');
    expect(await active()).toBeNull();
  });

  it('is checked before the id, which is checked then', async () => {
    for (const id of [...invalidIds, ...tooHighIds, 2 ** 31 - 1, ...bob.dttTemplates]) {
      const place = withId('/dtt/templates/{id}', id);
      await expectError(400, mustInclude, place, { method: 'POST', headers: json, body: '{}' });
      const message = 'Template not found or not owned by user';
      await expectError(404, message, place, { method: 'POST', headers: json, body: right });
    }
    expect(await active()).toBeNull();
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/json ;charset="UTF-8"'])(
    'may be sent as %s, with further fields, which are ignored, and percent-encoded digits in the path',
    async (type) => {
      const body = JSON.stringify({ isActive: true, name: 'renamed' });
      const encoded = path().replace(/\d/g, '%3$&');
      const response = await ask(encoded, { method: 'POST', headers: { 'Content-Type': type }, body });
      expect(recordOf(response)).toMatchObject({ isActive: true, name: 'Program 0 of alice' });
      await deactivate();
    },
  );
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
      for (const id of [String(bob.userId), '999', '2147483648', '9'.repeat(30)])
        expect(await askWith(path, method, id)).toEqual({
          status: 403,
          body: errorBody(`Forbidden: user ${id} is not accessible`),
        });
      for (const value of ['', '0', '01', '-1', 'x', '1e3', 'null', `%20${alice.userId}`, '%31x'])
        expect(await askWith(path, method, value)).toEqual({ status: 400, body: errorBody('Invalid ID') });
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
    expect(wrong.status).toBe(400);
  });
});

it.each(routes)('a field that fails is an error, and no null: $method $path', async (route) => {
  const failing = new Error('the database is away');
  const fail = () => Promise.reject(failing);
  const sql = { run: fail, findMany: fail, count: fail, write: fail } satisfies Sql;
  const context = createContext(sql, { id: 1, tokenId: 1, scope: 'activate' }, undefined);
  // Without its error, the null would look like a record that does not exist.
  expect(await route.run({ id: 1, limit: 1, offset: 0 }, context)).toMatchObject({
    data: { data: null },
    errors: [{ message: failing.message }],
  });
});
