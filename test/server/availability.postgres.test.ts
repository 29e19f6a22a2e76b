/** The database is away for a while: what clients get on every transport, and what the log says. */

import { afterAll, afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { createFakeFeed } from '../support/feed.ts';
import { graphqlOnce, openAt, openTestGateway, rest, type TestGateway } from '../support/gateway.ts';
import { type PgBouncer, pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { queryOnce } from '../support/postgres.ts';
import { hasTools, hasWebSockets } from '../support/settings.ts';
import { databaseWith } from '../support/setUp.ts';
import { connectSocket } from '../support/sockets.ts';
import { openTcpProxy } from '../support/tcpProxy.ts';

const message = 'The database cannot be reached; try again';

const { database, alice } = await databaseWith('alice');
await database.client.apiToken.updateMany({ data: { scope: 'manage' } });
const proxy = await openTcpProxy(database);
afterAll(proxy.close);
let gateway: TestGateway | undefined;
let pooler: PgBouncer | undefined;
afterEach(async () => {
  await gateway?.close();
  await pooler?.close();
  pooler = undefined;
});

async function open(url: string): Promise<TestGateway> {
  // A statement of a PgBouncer may wait for its server.
  const opened = await openAt(url, { connections: 5, statement: 2_000 });
  // The change feed stays, so known tokens need no look-up.
  const openChangeFeed = async () => createFakeFeed().feed;
  const options = { settings: { MCP: 'write' }, logLevel: 'info' };
  gateway = await openTestGateway({ ...opened, openChangeFeed }, options);
  return gateway;
}

const linesOf = ({ log }: TestGateway) =>
  log.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== 'responded');
const other = `dvt_${'b'.repeat(43)}`;

const query = '{ dttSessions { totalCount } }';
/** It is carried out by Prisma's client. After a failure, the token has to be looked up again. */
const revoke = 'mutation { revokeApiToken(token: { databaseId: 1000 }) { token { id } } }';
const call = { name: 'graphqlQuery', arguments: { query } };

/** Requests: what is accepted, the body, the target, and the status for a token that is known. */
const requests = (
  templateId: number,
): [accept: string, body?: unknown, target?: string, status?: number][] => [
  ['*/*', undefined, '/api/v1/dtt/sessions'],
  ['*/*', { isActive: true }, `/api/v1/dtt/templates/${templateId}`],
  ['*/*', { query }],
  // It is compiled the second time.
  ['application/json', { query }],
  ['*/*', undefined, `/graphql?query=${encodeURIComponent(query)}`],
  ['text/event-stream', { query }],
  ['multipart/mixed;subscriptionSpec=1.0', { query }],
  // The call of a tool has its error in its result.
  [
    'application/json, text/event-stream',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
    '/mcp',
    200,
  ],
];

/** Asks on every transport, with a known token and one that has to be looked up. */
async function ask(asked: TestGateway) {
  for (const [accept, body, target = '/graphql', ofKnown = 503] of requests(alice.dttTemplates[0])) {
    if (target === '/mcp' && !hasTools) continue;
    for (const [token, status] of [[alice.token, ofKnown] as const, [other, 503] as const]) {
      const given = await fetch(`${asked.url}${target}`, {
        method: body ? 'POST' : 'GET',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: accept },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await given.text();
      const retry = status === 503 ? '1' : null;
      expect([given.status, given.headers.get('Retry-After')], `${accept} ${target}: ${text}`).toEqual([
        status,
        retry,
      ]);
      expect(text).toContain(message);
      if (target.startsWith('/graphql'))
        expect(text).toContain('"code":"SERVICE_UNAVAILABLE","retryAfter":1');
    }
  }
}

const ofDatabase = (asked: TestGateway) => linesOf(asked).filter(({ msg }) => /^the database/.test(msg));

it.for(['', ', behind a PgBouncer that stays'])(
  'requests get a 503 until it is back, and the log has one line with the reason%s',
  async (behind, { skip }) => {
    skip(behind !== '' && pgbouncerVersion === undefined, 'pgbouncer is not installed');
    if (behind !== '') pooler = await startPgBouncer(proxy.url, 'transaction', ['server_login_retry = 1']);
    const asked = await open(pooler?.url ?? proxy.url);
    const revoked = async () => (await graphqlOnce(asked, alice.token, revoke)).errors?.[0]?.extensions;
    expect(await revoked()).toMatchObject({ code: 'NOT_FOUND' });
    const socket = hasWebSockets ? await connectSocket(asked, alice.token) : undefined;
    expect((await rest(asked, alice.token, '/users/me')).status).toBe(200);
    await proxy.refuse();
    await ask(asked);
    socket?.send({ id: '1', type: 'subscribe', payload: { query: '{ lkbxDevices { totalCount } }' } });
    if (socket)
      expect(await socket.next()).toMatchObject({
        type: 'error',
        payload: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 1 } }],
      });
    expect(await revoked()).toEqual({ code: 'SERVICE_UNAVAILABLE', retryAfter: 1 });
    expect((await fetch(`${asked.url}/readyz`)).status).toBe(503);
    expect(ofDatabase(asked)).toMatchObject([{ level: 50, why: expect.any(String) }]);
    expect(linesOf(asked).filter(({ msg }) => msg === 'request failed')).toEqual([]);

    await proxy.accept();
    const status = async () => (await rest(asked, alice.token, '/dtt/sessions')).status;
    await expect.poll(status, { timeout: 10_000 }).toBe(200);
    expect(await revoked()).toMatchObject({ code: 'NOT_FOUND' });
    expect(ofDatabase(asked)).toHaveLength(1);
    // The next time has a line of its own.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 61_000);
    await proxy.refuse();
    expect(await revoked()).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    await proxy.accept();
    expect(ofDatabase(asked)).toHaveLength(2);
  },
);

/** Why a server makes no connection, each by the statements for it and back. `app` stands for the role, `base` for the database. */
const refusals: Readonly<Record<string, readonly [begin: string, end: string]>> = {
  'CONNECT is revoked': [
    'REVOKE CONNECT ON DATABASE base FROM PUBLIC, app',
    'GRANT CONNECT ON DATABASE base TO PUBLIC, app',
  ],
  'the role has another password': [`ALTER ROLE app PASSWORD 'other'`, `ALTER ROLE app PASSWORD 'app'`],
  'the database has another name': [
    'ALTER DATABASE base RENAME TO base_old',
    'ALTER DATABASE base_old RENAME TO base',
  ],
};

const cases = Object.keys(refusals).map((why) => [why, ''] as const);
it.for([
  ...cases,
  ['CONNECT is revoked', ', behind a PgBouncer'],
  ['the database has another name', ', behind a PgBouncer'],
] as const)('requests get a 503 while %s%s', async ([why, behind], { skip }) => {
  skip(behind !== '' && pgbouncerVersion === undefined, 'pgbouncer is not installed');
  const url = new URL(database.pool.options.connectionString ?? '');
  const [base, role] = [url.pathname.slice(1), `app_${process.pid}`];
  const named = (sql: string) => sql.replaceAll(/\bapp\b(?!')/g, role).replaceAll(/\bbase(?=_old|\b)/g, base);
  const admin = Object.assign(new URL(url), { pathname: '/postgres' }).href;
  const run = (sql: string) => queryOnce(admin, named(sql));
  const ended = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'base'`;
  await run(`CREATE ROLE app LOGIN PASSWORD 'app'`);
  await database.pool.query(
    named(
      'GRANT ALL ON ALL TABLES IN SCHEMA public TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app',
    ),
  );
  onTestFinished(async () => {
    await database.pool.query(named('DROP OWNED BY app; DROP ROLE app'));
  });
  Object.assign(url, { username: role, password: 'app' });
  if (behind !== '') pooler = await startPgBouncer(url.href, 'transaction', ['server_login_retry = 1']);
  const asked = await open(pooler?.url ?? url.href);
  expect((await rest(asked, alice.token, '/users/me')).status).toBe(200);
  const [begin, end] = refusals[why] ?? [];
  await run(`${ended}; ${begin}; ${ended}`);
  try {
    await ask(asked);
    const revoked = (await graphqlOnce(asked, alice.token, revoke)).errors?.[0]?.extensions;
    expect(revoked).toEqual({ code: 'SERVICE_UNAVAILABLE', retryAfter: 1 });
    expect((await fetch(`${asked.url}/readyz`)).status).toBe(503);
    expect(linesOf(asked).filter(({ msg }) => msg === 'request failed')).toEqual([]);
  } finally {
    await run(end ?? '');
  }
  const status = async () => (await rest(asked, alice.token, '/dtt/sessions')).status;
  await expect.poll(status, { timeout: 10_000 }).toBe(200);
});
