/** Each tool gives what its route gives, to the client of the official SDK, in both versions of the protocol. */

import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, it } from 'vitest';
import { messages } from '../../../src/errors.ts';
import { onlyQueries } from '../../../src/extensions/mcp/tools.ts';
import { routes } from '../../../src/rest/routes.ts';
import { importTemplate } from '../../support/accounts.ts';
import { postJson, rest } from '../../support/gateway.ts';
import { pathsFor } from '../../support/restResponses.ts';
import { gatewayWith } from '../../support/setUp.ts';
import { connect, operationsFile, protocolVersions, textOf } from '../../support/toolClient.ts';

const settings = { MCP: 'write', PERSISTED_OPERATIONS_FILE: await operationsFile() };
const { gateway, alice, bob } = await gatewayWith(['alice', 'bob'], { settings });
await importTemplate(gateway.database.client, alice, bob.dttTemplates[0]);
const client = await connect(gateway, alice.token);
afterAll(() => client.close());

/** An operation may have several routes. Its tool has the name of the first. */
const toolNameOf = ({ operation }: (typeof routes)[number]) => operation.name?.value ?? '';
const ajv = new Ajv2020({ strict: true, validateFormats: false, allowUnionTypes: true });
/** Compiles a schema, which must be valid, to a function that validates values. */
const compileSchema = (schema: object) => ajv.compile(JSON.parse(JSON.stringify(schema)));

/** The structured content of a result, which is always an object in results of this server. */
const contentOf = ({ structuredContent }: { structuredContent?: unknown }) =>
  structuredContent as Record<string, unknown>;

const reading = routes.filter(({ isMutation }) => !isMutation);

describe.each(protocolVersions)('with the protocol version %s', (protocolVersion) => {
  it('every tool is listed with a description, an input schema and annotations, and can be called', async () => {
    const own = await connect(gateway, alice.token, protocolVersion);
    const { tools } = await own.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual([
      ...new Set(routes.map(toolNameOf)),
      'graphqlQuery',
      'SessionsOfTrainer',
      'Activate',
      'Devices',
    ]);
    for (const { name, description, inputSchema, annotations } of tools) {
      expect(description, name).not.toBe('');
      expect(inputSchema.type).toBe('object');
      const writes = /^activate/i.test(name);
      expect(annotations, name).toMatchObject({ readOnlyHint: !writes, destructiveHint: writes });
    }
    const { structuredContent } = await own.callTool({ name: 'getCurrentUser', arguments: {} });
    expect(structuredContent).toMatchObject({ data: { username: 'alice' } });
    await own.close();
  });
});

describe('a tool', () => {
  it('gives the data of each of its routes, for every account, and takes its id', async () => {
    const { tools } = await client.listTools();
    for (const account of [alice, bob]) {
      const own = await connect(gateway, account.token);
      for (const route of reading) {
        const tool = tools.find(({ name }) => name === toolNameOf(route)) ?? expect.fail(route.path);
        const takes = compileSchema(tool.inputSchema);
        const check = async (path: string) => {
          const { body } = await rest(gateway, account.token, path);
          const id = Number(path.split('/').at(-1));
          const given = route.path.endsWith('{id}') ? { id } : {};
          expect([takes(given), takes({})], path).toEqual([true, !('id' in given)]);
          const result = await own.callTool({ name: tool.name, arguments: given });
          const content = contentOf(result);
          expect({ ok: true, ...content }, path).toEqual(body);
          expect([JSON.parse(textOf(result)), result.isError ?? false], path).toEqual([content, false]);
        };
        await Promise.all(pathsFor(route.path, account).map(check));
      }
      await own.close();
    }
  });

  it.each([
    [{ limit: 2, offset: 1 }, 'limit=2&offset=1'],
    // Some models send null for what they leave out.
    [{ limit: null, offset: 1 }, 'offset=1'],
  ])('gives the page that %j requests', async (given, query) => {
    const { structuredContent } = await client.callTool({ name: 'listDttSessions', arguments: given });
    const { body } = await rest(gateway, alice.token, `/dtt/sessions?${query}`);
    expect({ ok: true, ...contentOf({ structuredContent }) }).toEqual(body);
  });

  it.each<[tool: string, given: Record<string, unknown>, message: string]>([
    ['getDttDevice', {}, messages.invalidId],
    ['getDttDevice', { id: 0 }, messages.invalidId],
    ['getDttDevice', { id: '1/../2' }, messages.invalidId],
    ['getDttDevice', { id: { toString: 1 } }, messages.invalidId],
    ['getDttDevice', { id: 2147483647 }, 'DTT device not found'],
    ['listDttDevices', { limit: 1000 }, 'limit must be an integer from 1 to 100'],
    ['listDttDevices', { id: 1 }, '"id" is no argument of this tool, which takes limit, offset'],
    ['getCurrentUser', { any: 1 }, '"any" is no argument of this tool, which takes none'],
    ['activateDttTemplate', { id: 2147483647 }, messages.templateNotOwned],
    ['activateDttTemplate', { id: '..' }, messages.templateNotOwned],
    ['graphqlQuery', { query: 7 }, 'The argument query must be a string'],
    ['graphqlQuery', { query: 'subscription { viewer { id } }' }, onlyQueries],
    [
      'graphqlQuery',
      {
        query:
          'query A { viewer { id } } mutation B { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }',
        operationName: 'A',
      },
      onlyQueries,
    ],
    [
      'graphqlQuery',
      { query: `{${'a{'.repeat(5_000)}` },
      'Syntax Error: Document contains more that 1000 tokens. Parsing aborted.',
    ],
  ])('%s rejects %j with the reason', async (name, given, message) => {
    const result = await client.callTool({ name, arguments: given });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toBe(message);
    expect(result.structuredContent).toBeUndefined();
  });
});

describe('an activation', () => {
  it('does what its route does, and is visible at once', async () => {
    // The first activation changes the schedule type.
    await postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[0]}`, { isActive: true });
    for (const id of [alice.dttTemplates[1], alice.dttTemplates[2]]) {
      const { structuredContent } = await client.callTool({ name: 'activateDttTemplate', arguments: { id } });
      const { body } = await postJson(gateway, alice.token, `/dtt/templates/${id}`, { isActive: true });
      expect({ ok: true, ...contentOf({ structuredContent }) }).toEqual(body);
      const active = await client.callTool({ name: 'getActiveDttTemplate', arguments: {} });
      expect(active.structuredContent).toMatchObject({ data: { id, isActive: true } });
    }
  });
});

describe('the tool graphqlQuery', () => {
  it('gives the data of the operation that is named, with variables', async () => {
    const { structuredContent } = await client.callTool({
      name: 'graphqlQuery',
      arguments: {
        query:
          'query A($id: Int!) { dttDevice(databaseId: $id) { bubbleId } } query B { viewer { username } }',
        variables: { id: alice.dttDevices[0] },
        operationName: 'A',
      },
    });
    expect(structuredContent).toEqual({ data: { dttDevice: { bubbleId: 'alice-dtt-0' } } });
  });

  it('gives an error and the partial data when a field fails', async () => {
    const result = await client.callTool({
      name: 'graphqlQuery',
      arguments: { query: '{ viewer { username } node(id: "x") { id } }' },
    });
    expect([result.isError, result.structuredContent]).toEqual([true, undefined]);
    expect(result.content.map((part) => (part.type === 'text' ? part.text : ''))).toEqual([
      'node: "x" is not a global id of this schema',
      '{"data":{"viewer":{"username":"alice"},"node":null}}',
    ]);
  });
});

describe('a persisted operation with a description', () => {
  it('is a tool, with the schema of its variables', async () => {
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === 'SessionsOfTrainer');
    expect(tool).toMatchObject({
      description: 'Sessions with one trainer, newest first.',
      inputSchema: {
        type: 'object',
        properties: {
          trainer: { type: 'integer', description: 'The trainer.' },
          first: { type: 'integer', default: 3 },
          where: { type: 'object', description: 'An input DttSessionFilter of the GraphQL schema.' },
          others: { type: 'array', items: { type: 'string' }, default: [] },
        },
        required: ['trainer'],
        additionalProperties: false,
      },
    });
    const result = await client.callTool({
      name: 'SessionsOfTrainer',
      arguments: { trainer: alice.dttDevices[0], first: 2 },
    });
    expect(result.structuredContent).toMatchObject({
      data: { dttDevice: { bubbleId: 'alice-dtt-0', sessions: { nodes: [{}, {}] } } },
    });
  });
});
