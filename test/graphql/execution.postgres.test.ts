/**
 * An operation is executed exactly once, whatever comes of it and however it is sent; one that is rejected, not at all. Its variables
 * are what the client has sent, whichever transport carries them.
 */

import { afterEach, describe, expect, it } from 'vitest';
import { executions } from '../../src/schema/operation.ts';
import { getGraphql, type TestGateway } from '../support/gateway.ts';
import { hasTools, hasWebSockets } from '../support/settings.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';

const settings = { MCP: 'read' };
// Nothing is cached, so that nothing but its own execution makes a response.
const { gateway, alice } = await gatewayWith(['alice'], { settings, cacheBytes: 0 });
const caching = await gatewayBeside(gateway.database, { settings });
afterEach(closeSockets);

async function post(at: TestGateway, path: string, accept: string, body: string): Promise<string> {
  const headers = {
    Authorization: `Bearer ${alice.token}`,
    'Content-Type': 'application/json',
    Accept: accept,
  };
  return (await fetch(at.url + path, { method: 'POST', headers, body })).text();
}

const json = 'application/json';

/** Sends the JSON text of the members of a request, and gives the text of the response. */
type Send = (query: string, variables: string, at: TestGateway) => Promise<string>;

const bodyOf = (query: string, variables: string) =>
  `{"query":${JSON.stringify(query)},"variables":${variables}}`;

const ways: Record<string, Send> = {
  'by POST': (query, variables, at) => post(at, '/graphql', json, bodyOf(query, variables)),
  'as events': (query, variables, at) => post(at, '/graphql', 'text/event-stream', bodyOf(query, variables)),
  'by GET': async (query, variables, at) => (await getGraphql(at, alice.token, { query, variables })).text(),
  'by a WebSocket': async (query, variables, at) => {
    const socket = await connectSocket(at, alice.token);
    socket.send(`{"id":"1","type":"subscribe","payload":${bodyOf(query, variables)}}`);
    return JSON.stringify(await socket.next());
  },
  'by a tool': (query, variables, at) =>
    post(
      at,
      '/mcp',
      `${json}, text/event-stream`,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"graphqlQuery","arguments":${bodyOf(query, variables)}}}`,
    ),
};
const missing = [...(hasTools ? [] : ['by a tool']), ...(hasWebSockets ? [] : ['by a WebSocket'])];
const names = Object.keys(ways).filter((name) => !missing.includes(name));

/** What the responses to a request say, and how many executions each took. A repeated request takes the same way. */
async function expectTwice(how: string, query: string, variables: string, says: RegExp, count: number) {
  for (let time = 0; time < 2; time++) {
    const before = executions.compiled + executions.interpreted;
    expect(await ways[how]?.(query, variables, gateway), how).toMatch(says);
    expect(executions.compiled + executions.interpreted - before, how).toBe(count);
  }
}

const size = 'query ($n: Int) { dttDevices(first: $n) { totalCount } }';
const activate =
  'mutation { activateTemplate(template: { databaseId: 2147483647 }) { scheduleTypeChanged } }';

describe.each(names)('%s an operation is executed once', (how) => {
  it.each<[what: string, query: string, variables: string, says: RegExp]>([
    ['that succeeds', '{ viewer { username } }', '{}', /"alice"/],
    ['with an argument that is out of bounds', size, '{"n":0}', /first must be an integer/],
    [
      'with a null that is found when it runs',
      'query ($n: Int = 1) { dttDevice(databaseId: $n) { id } }',
      '{"n":null}',
      /must not be null/,
    ],
    ['of several versions', '{ viewer { id @skip(if: true) rank } }', '{}', /"rank":0/],
  ])('%s', async (_, query, variables, says) => {
    await expectTwice(how, query, variables, says, 1);
  });

  it('that writes and fails, where it may write', async () => {
    const mayWrite = how !== 'by GET' && how !== 'by a tool';
    const says = mayWrite ? /Template not found/ : /only perform a mutation|Only queries are run/;
    await expectTwice(how, activate, '{}', says, mayWrite ? 1 : 0);
  });

  it('that the database fails, with one statement', async () => {
    const { pool } = gateway.database;
    await pool.query('ALTER TABLE "DttDevice" RENAME TO "Elsewhere"');
    const before = gateway.log.length;
    const isLive = how === 'by a WebSocket';
    try {
      await expectTwice(how, size, '{}', /Internal server error/, 1);
      if (isLive) await ways[how]?.('subscription { dttDevices { totalCount } }', '{}', gateway);
    } finally {
      await pool.query('ALTER TABLE "Elsewhere" RENAME TO "DttDevice"');
    }
    expect(gateway.log.length - before, how).toBe(isLive ? 3 : 2);
  });
});

const tooComplex = '{ dttTemplates(first: 100) { nodes { sessions(first: 100) { nodes { id name } } } } }';

describe.each(names)('%s nothing is executed of an operation', (how) => {
  it.each<[what: string, query: string, variables: string, says: RegExp]>([
    ['with a syntax error', '{', '{}', /Syntax Error/],
    ['that is invalid', '{ nobody }', '{}', /Cannot query field/],
    ['with a wrong variable', size, '{"n":"x"}', /Variable \\"\$n\\" got invalid value/],
    ['that is too deep', `{${'viewer{'.repeat(21)}id${'}'.repeat(21)}}`, '{}', /at most 20 are allowed/],
    ['that is too complex', tooComplex, '{}', /complexity of 20202; at most 20000 is allowed/],
    ['that has no name', 'query A { __typename } query B { __typename }', '{}', /has to name/],
    ['with a number that is too large', size, '{"n":1e999}', /Int cannot represent/],
    [
      'with variables that are too deep',
      size,
      `{"n":${'['.repeat(90)}${']'.repeat(90)}}`,
      /too deeply|one JSON-RPC request/,
    ],
  ])('%s', async (_, query, variables, says) => {
    await expectTwice(how, query, variables, says, 0);
  });
});

it.each(names)(
  'a number that is too large is never taken for the null of a cached response: %s',
  async (how) => {
    for (const [n, says] of [
      ['null', /totalCount/],
      ['1e999', /Int cannot represent/],
      ['-1e999', /Int cannot represent/],
    ] as const)
      for (let time = 0; time < 2; time++)
        expect(await ways[how]?.(size, `{"n":${n}}`, caching)).toMatch(says);
  },
);
