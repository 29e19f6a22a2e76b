/** Deprecated routes: each response has the headers of RFC 9745 and RFC 8594, and the OpenAPI document marks the routes. */

import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../../src/http/response.ts';
import { createRestHandler } from '../../src/rest/handler.ts';
import { describeRest } from '../../src/rest/openapi.ts';
import { loadRoutes } from '../../src/rest/routes.ts';
import { createContext } from '../../src/schema/context.ts';
import { schema } from '../../src/schema/schema.ts';
import { createTaskRunner } from '../../src/server/tasks.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { type Exchanges, openExchanges } from '../support/exchanges.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';

const routes = loadRoutes(
  parse(`
    query Devices($limit: Int!, $offset: Int!)
    @http(method: GET, path: "/devices")
    @http(
      method: GET
      path: "/old"
      deprecated: "2026-01-01"
      sunset: "2027-01-01"
      link: "https://example.com/news?a=1"
      successor: "/api/v1/devices"
    ) {
      data: dttDevices(first: $limit, offset: $offset) { data: nodes { id: databaseId } }
    }

    query Device($id: Int!) @http(method: GET, path: "/old/{id}", missing: "No device", deprecated: "1969-12-31") {
      data: dttDevice(databaseId: $id) { id: databaseId }
    }

    mutation Activate($id: Int!)
    @http(method: POST, path: "/old/{id}", missing: "No template", body: { isActive: true }, deprecated: "2026-06-30") {
      data: activateTemplate(template: { databaseId: $id }) { scheduleTypeChanged }
    }
  `),
);

let gateway: TestGateway;
let server: Exchanges;
let alice: Account;
/** The error with which the next operations fail. */
let fault: Error | undefined;

beforeAll(async () => {
  gateway = await openTestGateway();
  const { database, responseCache } = gateway;
  alice = await createAccount(database.client, 'alice');
  const viewer = { id: alice.userId, tokenId: 1 };
  const handler = createRestHandler({
    routes,
    createContext: (each) => {
      if (fault) throw fault;
      return createContext(database.sql, each, undefined);
    },
  });
  const runTask = createTaskRunner({
    responseCache,
    shed: () => false,
    onChanged: responseCache.invalidate,
    positions: undefined,
  });
  server = await openExchanges(async (exchange) => {
    const task = await handler(exchange, viewer);
    if ('status' in task) return send(exchange, task);
    const made = await runTask(exchange, viewer, task);
    if ('body' in made) send(exchange, made);
  });
});
afterAll(async () => {
  server?.close();
  await gateway?.close();
});

async function ask(path: string, options: RequestInit = {}) {
  const response = await fetch(`${server.url}/api/v1${path}`, options);
  await response.text();
  const named = ['Deprecation', 'Sunset', 'Link'].map((name) => [name, response.headers.get(name)]);
  const headers = Object.fromEntries(named.filter(([, value]) => value !== null));
  return { status: response.status, headers, etag: response.headers.get('ETag') };
}

const listHeaders = {
  Deprecation: '@1767225600',
  Sunset: 'Fri, 01 Jan 2027 00:00:00 GMT',
  Link: '<https://example.com/news?a=1>; rel="deprecation"; type="text/html", </api/v1/devices>; rel="successor-version"',
};
const post = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

describe('a response of a deprecated route', () => {
  it('has the headers of deprecation when it is computed, cached, a 304, or for HEAD', async () => {
    const computed = await ask('/old');
    expect(computed).toMatchObject({ status: 200, headers: listHeaders });
    const { hits } = gateway.responseCache.counters;
    // Nothing is cached until the rows of the new account have been announced.
    await expect
      .poll(async () => {
        expect(await ask('/old')).toEqual(computed);
        return gateway.responseCache.counters.hits;
      })
      .toBe(hits + 1);
    const conditional = { headers: { 'If-None-Match': computed.etag ?? '' } };
    expect(await ask('/old', conditional)).toMatchObject({ status: 304, headers: listHeaders });
    expect(await ask('/old', { method: 'HEAD' })).toMatchObject({ status: 200, headers: listHeaders });
  });

  it('has them when it is an error or that of a write, and other routes and a 405 have none', async () => {
    fault = new Error('expected by the test');
    expect(await ask('/old?limit=2')).toMatchObject({ status: 500, headers: listHeaders });
    fault = undefined;
    for (const [path, status, options, Deprecation] of [
      ['/old/x', 400, {}, '@-86400'],
      ['/old/2147483647', 404, {}, '@-86400'],
      ['/old/1', 400, post({}), '@1782777600'],
      ['/old/x', 404, post({ isActive: true }), '@1782777600'],
      ['/old/1', 413, post('x'.repeat(70_000)), '@1782777600'],
      [`/old/${alice.dttTemplates[0]}`, 200, post({ isActive: true }), '@1782777600'],
    ] as const)
      expect(await ask(path, options), path).toMatchObject({ status, headers: { Deprecation } });
    for (const [path, status, options] of [
      ['/devices', 200, {}],
      ['/old', 405, { method: 'PUT' }],
    ] as const)
      expect(await ask(path, options), path).toEqual({
        status,
        headers: {},
        etag: status === 200 ? expect.any(String) : null,
      });
  });
});

describe('a deprecated route', () => {
  it('is deprecated in the OpenAPI document, with its headers', () => {
    const document = describeRest({ routes, schema, version: '1.0.0', examples: {} });
    const { get } = document.paths?.['/old'] ?? {};
    expect(get?.deprecated).toBe(true);
    expect(get?.description).toContain(
      'Deprecated since 2026-01-01. May be gone from 2027-01-01 on. ' +
        '[What takes its place](/api/v1/devices). [More about it](https://example.com/news?a=1).',
    );
    expect(document.paths?.['/devices']?.get).not.toHaveProperty('deprecated');
    expect(document.paths?.['/old/{id}']?.post?.responses?.['200']).toHaveProperty('headers.Deprecation', {
      required: true,
      schema: { type: 'string', const: '@1782777600' },
    });
  });

  it('stops the start when its day does not exist', () => {
    const text = 'query X @http(method: GET, path: "/x", deprecated: "2026-02-30") { data: viewer { id } }';
    expect(() => loadRoutes(parse(text))).toThrow(RangeError);
  });
});
