/** The OpenAPI document, and the check of responses against it, which all tests with a gateway use. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { describeRest } from '../../src/rest/openapi.ts';
import { loadRoutes, routes } from '../../src/rest/routes.ts';
import { schema } from '../../src/schema/schema.ts';
import { release } from '../../src/version.ts';
import { openTestGateway, rest } from '../support/gateway.ts';
import { createConformanceCheck, describeShipped } from '../support/openapiDocument.ts';
import { withId } from '../support/restResponses.ts';
import type { SentResponse } from '../support/watchResponses.ts';

/** The document for operations that a test writes. */
const describeText = (text: string) =>
  describeRest({ routes: loadRoutes(parse(text)), schema, version: '1.0.0', examples: {} });

describe('the OpenAPI document', () => {
  it('is the content of openapi.json, with responses of the demo account as examples (npx vitest run -u updates both)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dovetail-examples-'));
    const gateway = await openTestGateway();
    try {
      // With a fixed time, the examples are always the same.
      const token = await prepareDemo(gateway.database, folder, {
        now: new Date('2026-02-17T12:00:00Z'),
      });
      const examples: Record<string, unknown> = {};
      for (const { method, path, operation, isList, body } of routes) {
        const given = await rest(gateway, token, withId(path, 1) + (isList ? '?limit=1' : ''), {
          method,
          ...(body && {
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify(body.values),
          }),
        });
        // The demo account has data for every route.
        expect({ path, ...given }).toMatchObject({ status: 200, body: { data: expect.anything() } });
        examples[operation.name?.value ?? ''] = given.body.data;
      }
      await expect(`${JSON.stringify(examples, null, 2)}\n`).toMatchFileSnapshot(
        '../../src/rest/examples.json',
      );
      await expect(`${JSON.stringify(describeShipped(examples), null, 2)}\n`).toMatchFileSnapshot(
        '../../openapi.json',
      );
    } finally {
      await gateway.close();
      await rm(folder, { recursive: true });
    }
  });

  it('has the version of the interface, with that of the gateway beside it', () => {
    expect(describeShipped().info).toMatchObject({ version: '1.0.0', 'x-gateway-version': release });
  });

  it('describes what no route of the gateway selects: an enum, a day, and a fragment beside a field', () => {
    const { paths = {}, components } = describeText(`
      query X @http(method: GET, path: "/x") { data: viewer { id scheduleType ... { rank } } }
      query Lock($id: Int!) @http(method: GET, path: "/lock/{id}", missing: "No lock") {
        data: lockSession(databaseId: $id) { template { ...TemplateFields id } }
      }
      query Stats @http(method: GET, path: "/stats") {
        data: dttSessionStats { groups { period { date } } }
      }
      fragment TemplateFields on LockTemplate { name }`);
    const withData = (data: object) => ({
      responses: { 200: { content: { 'application/json': { schema: { properties: { data } } } } } },
    });
    const period = { properties: { date: { type: 'string', format: 'date' } } };
    const template = { type: ['object', 'null'], required: ['name', 'id'] };
    expect(paths).toMatchObject({
      '/x': {
        get: withData({
          properties: {
            id: { type: 'string' },
            // Null only in a mirror, whose rows are in no response of the REST API.
            scheduleType: {
              $ref: '#/components/schemas/ScheduleType',
              description: 'How the next template is chosen.',
            },
            rank: { type: 'integer', description: 'Rank in the league.' },
          },
        }),
      },
      // The records of the route are lock sessions, although it selects a template first.
      '/lock/{id}': { get: { tags: ['Lock Sessions'], ...withData({ properties: { template } }) } },
      '/stats': { get: withData({ properties: { groups: { items: { properties: { period } } } } }) },
    });
    expect(components?.schemas?.ScheduleType).toEqual({
      type: 'string',
      enum: ['AUTO', 'SINGLE', 'WEEKLY'],
      description:
        'How the next template is chosen.\n\n- `AUTO`: By the service.\n- `SINGLE`: By the user: always the active template.\n- `WEEKLY`: By a weekly plan.',
    });
  });

  it.each([
    ['data: node(id: "x") { ... on User { rank } }', 'X selects Node, which has no type in JSON'],
    ['data: viewer { ...Name }', 'X selects what only some of its records have'],
    ['data: viewer { __typename }', 'X selects __typename, which is not described'],
    ['... { data: viewer { id } }', 'X does not select its data first'],
    ['data: __typename', 'X does not select its data first'],
  ])('cannot be created for an operation whose data has no fixed type: %s', (selection, message) => {
    const fragment = selection.includes('...Name') ? 'fragment Name on Node { id }' : '';
    const text = `query X @http(method: GET, path: "/x") { ${selection} } ${fragment}`;
    expect(() => describeText(text)).toThrow(message);
  });
});

describe('the check of responses against the document', () => {
  const check = createConformanceCheck(describeShipped());
  const json = { 'content-type': 'application/json; charset=utf-8' };
  const right: SentResponse = {
    method: 'GET',
    target: '/lkbx/templates/active',
    status: 200,
    headers: { ...json, etag: '"x"' },
    body: '{"ok":true,"data":{"id":1,"name":"n","duration":1,"isBreakEnabled":true}}',
  };

  it('accepts a response with data, and null where it is allowed', () => {
    expect(check(right)).toBeUndefined();
    expect(check({ ...right, body: '{"ok":true,"data":null}' })).toBeUndefined();
  });

  it.each<[string, Partial<SentResponse>]>([
    ['a missing field', { body: right.body.replace('"duration":1,', '') }],
    ['an additional field', { body: right.body.replace('"id":1', '"id":1,"x":1') }],
    ['a field of another type', { body: right.body.replace('"id":1', '"id":"1"') }],
    ['a number beyond 32 bits', { body: right.body.replace('"id":1', '"id":3000000000') }],
    ['null where there must be a value', { body: right.body.replace('"n"', 'null') }],
    ['null where null is an error', { target: '/lkbx/1', body: '{"ok":true,"data":null}' }],
    ['another envelope', { body: '{"data":null}' }],
    ['a missing header', { headers: json }],
    ['another media type', { headers: { ...right.headers, 'content-type': 'text/html' } }],
    ['another status', { status: 204, body: '' }],
    ['a status that only other routes have', { status: 404, body: '{"ok":false,"error":"Not found"}' }],
    ['an undocumented message', { status: 500, body: '{"ok":false,"error":"Oh"}' }],
    ['a response with data on an unknown path', { target: '/x' }],
    ['a 304 with a body', { status: 304 }],
  ])('rejects %s', (_, given) => {
    expect(check({ ...right, ...given })).toBeDefined();
  });
});
