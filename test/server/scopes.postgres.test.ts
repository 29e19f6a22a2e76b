/**
 * Every operation, route, transport and tool against each scope: what needs more than the token has is rejected with the scope that it
 * needs, and leaves the database as it was.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/client';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { allows, type Scope, scopes } from '../../src/auth/scopes.ts';
import { createToken } from '../../src/auth/tokens.ts';
import { routes } from '../../src/rest/routes.ts';
import { writeGlobalId } from '../../src/schema/globalId.ts';
import { schema } from '../../src/schema/schema.ts';
import { newFolder } from '../support/newFolder.ts';
import { hasPersistedFile, hasTools, hasWebSockets } from '../support/settings.ts';
import { gatewayWith } from '../support/setUp.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';
import { connect } from '../support/toolClient.ts';

const file = join(newFolder(), 'operations.json');
const activates = 'activateTemplate(template: { databaseId: $id }) { scheduleTypeChanged }';
const operations = {
  p1: `"Activates." mutation Persisted($id: Int!) { ${activates} }`,
  c1: `"Creates." mutation Created($id: Int!) { ${activates} createApiToken(name: "x") { secret } }`,
  r1: `"Revokes." mutation Revoked($id: Int!) { revokeApiToken(token: { databaseId: $id }) { __typename } }`,
  t1: '"Reads." query Tokens { viewer { currentToken { id } } }',
};
await writeFile(file, JSON.stringify(operations));
const settings = { MCP: 'write', PERSISTED_OPERATIONS_FILE: file };
const { gateway, alice: account } = await gatewayWith(['alice'], { settings });
const tokens = new Map<Scope, string>();
const clients = new Map<Scope, Client>();
for (const scope of scopes) {
  const { token } = await createToken(gateway.database.pool, 'alice', scope, { scope });
  tokens.set(scope, token);
  if (hasTools) clients.set(scope, await connect(gateway, token));
}
afterEach(closeSockets);
afterAll(async () => {
  for (const client of clients.values()) await client.close();
});

const authorized = (scope: Scope) => ({ Authorization: `Bearer ${tokens.get(scope)}` });

/** The status and the body of a response. */
interface Outcome {
  readonly status: number | undefined;
  readonly text: string;
}
type Run = (scope: Scope) => Promise<Outcome>;

async function send(target: string, options: RequestInit): Promise<Outcome> {
  const stopped = new AbortController();
  const response = await fetch(`${gateway.url}${target}`, { ...options, signal: stopped.signal });
  if (!/event-stream|multipart/.test(response.headers.get('Content-Type') ?? ''))
    return { status: response.status, text: await response.text() };
  // Of a stream, the first result.
  let text = '';
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString();
    if (/"(data|errors)":/.test(text)) break;
  }
  stopped.abort();
  return { status: response.status, text };
}

const post = (content: () => object, accept = 'application/json', target = '/graphql'): Run => {
  const type = { 'Content-Type': 'application/json', Accept: accept };
  return (scope) =>
    send(target, {
      method: 'POST',
      headers: { ...type, ...authorized(scope) },
      body: JSON.stringify(content()),
    });
};
const get =
  (target: string, accept = 'application/json', method = 'GET'): Run =>
  (scope) =>
    send(target, { method, headers: { Accept: accept, ...authorized(scope) } });
const targetOf = (query: string) => `/graphql?${new URLSearchParams({ query })}`;

const throughSocket =
  (query: () => string): Run =>
  async (scope) => {
    const socket = await connectSocket(gateway, tokens.get(scope) ?? '');
    socket.send({ id: '1', type: 'subscribe', payload: { query: query() } });
    return { status: undefined, text: JSON.stringify(await socket.next()) };
  };

const tool =
  (name: string, given: () => Record<string, unknown> = () => ({})): Run =>
  async (scope) => {
    const result = await clients.get(scope)?.callTool({ name, arguments: given() });
    return { status: undefined, text: JSON.stringify(result) };
  };

const template = () => account.dttTemplates[1];
const activation = () =>
  `mutation { activateTemplate(template: { databaseId: ${template()} }) { scheduleTypeChanged } }`;
const creation = 'mutation { createApiToken(name: "made") { token { id } } }';
const revocation = 'mutation { revokeApiToken(token: { databaseId: 2147483647 }) { token { id } } }';
const query = '{ viewer { username apiTokens { name } currentToken { name } } }';
const both = () =>
  `mutation { ...M } fragment M on Mutation { a: activateTemplate(template: { databaseId: ${template()} }) { scheduleTypeChanged } ... { b: createApiToken(name: "both") { secret } } }`;
const two = () => `${activation().replace(' ', ' A ')} ${creation.replace(' ', ' B ')}`;
const subscription = `subscription ${query}`;

/** The tools, with the scope that each needs. */
const tools: readonly [string, Scope, Run][] = [
  ['activateDttTemplate', 'activate', tool('activateDttTemplate', () => ({ id: template() }))],
  ['Persisted', 'activate', tool('Persisted', () => ({ id: template() }))],
  ['graphqlQuery', 'read', tool('graphqlQuery', () => ({ query: '{ viewer { username } }' }))],
];

const when = (isThere: boolean, those: readonly [string, Scope, Run][]) => (isThere ? those : []);

const cases: [string, Scope, Run][] = [
  ['POST of a query', 'read', post(() => ({ query }))],
  ['GET of a query', 'read', get(targetOf(query))],
  ['HEAD of a query', 'read', get(targetOf(query), 'application/json', 'HEAD')],
  ['an event stream by POST', 'read', post(() => ({ query: subscription }), 'text/event-stream')],
  ['an event stream by GET', 'read', get(targetOf(subscription), 'text/event-stream')],
  [
    'a multipart stream',
    'read',
    post(() => ({ query: subscription }), 'multipart/mixed;subscriptionSpec=1.0'),
  ],
  ['POST of activateTemplate', 'activate', post(() => ({ query: activation() }))],
  [
    'an activation with the name of its type',
    'activate',
    post(() => ({ query: activation().replace('{', '{ __typename') })),
  ],
  ['an activation as one event', 'activate', post(() => ({ query: activation() }), 'text/event-stream')],
  ['POST of createApiToken', 'manage', post(() => ({ query: creation }))],
  ['POST of revokeApiToken', 'manage', post(() => ({ query: revocation }))],
  ['an activation beside a creation', 'manage', post(() => ({ query: both() }))],
  ['an activation named before a creation', 'activate', post(() => ({ query: two(), operationName: 'A' }))],
  ...routes.map(({ method, path, isMutation }): [string, Scope, Run] => {
    const target = () => `/api/v1${path.replace('{id}', String(template()))}`;
    return [
      `${method} ${path}`,
      isMutation ? 'activate' : 'read',
      isMutation
        ? (scope) => post(() => ({ isActive: true }), 'application/json', target())(scope)
        : (scope) => get(target())(scope),
    ];
  }),
  ...when(hasPersistedFile, [
    ['a persisted activation', 'activate', post(() => ({ documentId: 'p1', variables: { id: template() } }))],
    ['a persisted creation', 'manage', post(() => ({ documentId: 'c1', variables: { id: template() } }))],
  ]),
  ...when(hasWebSockets, [
    ['a query through a WebSocket', 'read', throughSocket(() => query)],
    ['a subscription through a WebSocket', 'read', throughSocket(() => subscription)],
    ['an activation through a WebSocket', 'activate', throughSocket(activation)],
    ['createApiToken through a WebSocket', 'manage', throughSocket(() => creation)],
  ]),
  ...when(hasTools, tools),
];

/** What an operation of the scopes may change. */
async function rows() {
  const { client } = gateway.database;
  const apiTokens = await client.apiToken.findMany({ orderBy: { id: 'asc' }, omit: { lastUsedAt: true } });
  return JSON.stringify([await client.user.findMany(), apiTokens], (_, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
  );
}

const reset = () =>
  gateway.database.pool.query(
    `UPDATE "User" SET "activeTemplateId" = NULL, "scheduleType" = 'auto'; DELETE FROM "ApiToken" WHERE name <> ALL ('{test,read,activate,manage}')`,
  );

async function check(needed: Scope, run: Run): Promise<void> {
  for (const scope of scopes) {
    await reset();
    const before = await rows();
    const { status, text } = await run(scope);
    const isAllowed = allows(scope, needed);
    const message = `Forbidden: this needs a token with the scope ${needed}`;
    expect([scope, text.includes(message), status === 403]).toEqual([
      scope,
      !isAllowed,
      !isAllowed && status !== undefined && !text.startsWith('[') && !text.startsWith('event'),
    ]);
    if (isAllowed) expect(text).not.toMatch(/Forbidden/);
    else expect(await rows()).toBe(before);
    if (isAllowed && needed === 'activate') expect(await rows()).not.toBe(before);
  }
}

it.each(cases)('%s needs the scope %s', (_, needed, run) => check(needed, run));

it('every mutation is in the table, and says which scope it needs', () => {
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
  for (const { name, extensions } of mutations)
    expect(cases).toContainEqual([`POST of ${name}`, extensions.scope, expect.any(Function)]);
});

describe.skipIf(!hasTools)('the tools', () => {
  it('that change something need the scope of their request, and all others need read', async () => {
    const offered = (await clients.get('read')?.listTools())?.tools ?? [];
    const writing = offered.filter(({ annotations }) => !annotations?.readOnlyHint).map(({ name }) => name);
    const needing = tools.filter(([, scope]) => scope !== 'read').map(([name]) => name);
    expect(writing.toSorted()).toEqual(needing.toSorted());
    for (const { name, inputSchema } of offered)
      if (!writing.includes(name) && name !== 'graphqlQuery')
        await check(
          'read',
          tool(name, () => ('id' in (inputSchema.properties ?? {}) ? { id: 1 } : {})),
        );
  });

  it('offer none of what concerns tokens', async () => {
    const offered = (await clients.get('manage')?.listTools())?.tools ?? [];
    for (const { name } of offered) expect(['Created', 'Revoked', 'Tokens']).not.toContain(name);
    const unavailable = 'The tokens of the account are not available here';
    for (const [document, message] of [
      [query, unavailable],
      ['{ viewer { ...U } } fragment U on User { a: currentToken { id } }', unavailable],
      [creation, 'Only queries are run here'],
    ] as const)
      expect((await tool('graphqlQuery', () => ({ query: document }))('manage')).text).toContain(message);
    const node = 'query ($id: ID!) { node(id: $id) { id } }';
    const named = () => ({ query: node, variables: { id: writeGlobalId('ApiToken', 1) } });
    expect((await tool('graphqlQuery', named)('manage')).text).toContain(unavailable);
  });
});
