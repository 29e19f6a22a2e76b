/** The OpenAPI document. */

import { createConfig, lintFromString } from '@redocly/openapi-core';
import { isObjectType, parse } from 'graphql';
import type { OperationObject, SchemaObject } from 'openapi3-ts/oas31';
import { describe, expect, it } from 'vitest';
import { describeRest } from '../../reading/openapi.ts';
import { overrides } from '../../reading/overrides.ts';
import { loadRoutes, routes } from '../../src/rest/routes.ts';
import { schema } from '../../src/schema/schema.ts';
import { loadDemo } from '../support/demo.ts';
import { openTestGateway, rest } from '../support/gateway.ts';
import { newFolder } from '../support/newFolder.ts';
import { shippedDocument } from '../support/openapiDocument.ts';
import { withId } from '../support/restResponses.ts';
import { hasDemo } from '../support/settings.ts';

/** The document for operations that a test writes. */
const describeText = (text: string) => describeRest(loadRoutes(parse(text)));

describe('the OpenAPI document', () => {
  it.skipIf(!hasDemo)(
    'is the content of openapi.json, with responses of the demo account as examples (npx vitest run -u updates it)',
    async () => {
      const folder = newFolder();
      const gateway = await openTestGateway();
      try {
        // With a fixed time, the examples are always the same.
        const token = await loadDemo(gateway.database, folder, new Date('2026-02-17T12:00:00Z'));
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
        await expect(`${JSON.stringify(describeRest(routes, examples), null, 2)}\n`).toMatchFileSnapshot(
          '../../openapi.json',
        );
      } finally {
        await gateway.close();
      }
    },
  );

  it('has a short summary and a description of each operation, and marks the aliases', () => {
    const operations = Object.entries(shippedDocument.paths ?? {}).flatMap(([path, item]) =>
      Object.values(item).map((operation: OperationObject) => ({ path, ...operation })),
    );
    for (const { operationId = '', summary = '', description = '' } of operations) {
      expect(operationId).toMatch(/^(list|get|activate)[A-Z]/);
      expect(summary.length, operationId).toBeLessThan(50);
      expect(description, operationId).not.toMatch(/^$/);
      expect(description, operationId).not.toContain(summary);
    }
    const aliases = operations.filter(({ summary }) => summary?.startsWith('Alias'));
    expect(aliases.map(({ path, operationId, summary }) => [path, operationId, summary])).toEqual([
      ['/dtt/settings/{id}', 'getDttSettings', 'Alias of `/dtt/templates/{id}`.'],
      ['/lkbx/session', 'listLkbxSessions', 'Alias of `/lkbx/sessions`.'],
      ['/lkbx/session/{id}', 'getLkbxSession', 'Alias of `/lkbx/sessions/{id}`.'],
    ]);
  });

  it('closes no object, since properties may be added', () => {
    expect(JSON.stringify(shippedDocument).match(/"additionalProperties":\w+/)).toBeNull();
  });

  it('says nothing that holds for GraphQL alone', () => {
    const document = shippedDocument;
    expect(JSON.stringify(document)).not.toMatch(/NOT_FOUND|`owner`|REST interface|viewer|databaseId/i);
    const schemas = Object.values(document.components?.schemas ?? {}) as SchemaObject[];
    for (const { required = [], properties = {}, description = '' } of schemas) {
      const left = Object.entries(properties).filter(([name]) => !required.includes(name));
      const texts = left.map(([, property]) => property.description ?? '');
      if (left.length > 0) expect([description, ...texts].join(' ')).not.toMatch(/null/);
    }
  });

  it('has a use for each text of its own', () => {
    for (const name of Object.keys(overrides)) {
      const [type = '', field] = /^[A-Z]/.test(name) ? name.split('.') : [undefined, name];
      const types = Object.values(schema.getTypeMap()).filter(isObjectType);
      const fields = types
        .filter((each) => type === '' || each.name === type)
        .map((each) => each.getFields());
      expect(
        fields.some((given) => field === undefined || field in given),
        name,
      ).toBe(true);
    }
  });

  it('describes what no route of the gateway selects: an enum, and a fragment beside a field', () => {
    const { paths = {}, components } = describeText(`
      query X @http(method: GET, path: "/x") { data: viewer { id scheduleType ... { rank } } }
      query Lock($id: Int!) @http(method: GET, path: "/lock/{id}", missing: "No lock") {
        data: lockSession(databaseId: $id) { template { ...TemplateFields id } }
      }
      fragment TemplateFields on LockTemplate { name }`);
    const withData = (data: object) => ({
      responses: { 200: { content: { 'application/json': { schema: { properties: { data } } } } } },
    });
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
    });
    expect(components?.schemas?.ScheduleType).toMatchObject({ enum: ['AUTO', 'SINGLE', 'WEEKLY'] });
  });

  it.each([
    ['data: node(id: "x") { ... on User { rank } }', 'X selects Node, which has no type in JSON'],
    ['data: viewer { ...Name }', 'X selects what only some of its records have'],
    ['data: __typename', 'X does not select its data first'],
  ])('cannot be created for an operation whose data has no fixed type: %s', (selection, message) => {
    const fragment = selection.includes('...Name') ? 'fragment Name on Node { id }' : '';
    const text = `query X @http(method: GET, path: "/x") { ${selection} } ${fragment}`;
    expect(() => describeText(text)).toThrow(message);
  });
});

it('the OpenAPI document conforms to the strict rules of Redocly, so that tools for clients can use it', async () => {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source: JSON.stringify(shippedDocument), config });
  expect(problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`)).toEqual([]);
});
