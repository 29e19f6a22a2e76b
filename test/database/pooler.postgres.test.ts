/** A gateway whose DATABASE_URL names a pooler: real PgBouncers in front of a real PostgreSQL. */

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import {
  graphqlOnce,
  openAt,
  openTestGateway,
  postJson,
  rest,
  type TestGateway,
} from '../support/gateway.ts';
import { type PgBouncer, type PoolMode, pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';
import { databaseWith } from '../support/setUp.ts';

beforeEach(({ skip }) => {
  skip(pgbouncerVersion === undefined, 'pgbouncer is not installed, and PGBOUNCER names none');
});

const { database, alice } = await databaseWith('alice');
const url = database.pool.options.connectionString ?? '';

let pooler: PgBouncer | undefined;
let gateway: TestGateway | undefined;
afterEach(async () => {
  await gateway?.close();
  await pooler?.close();
  gateway = undefined;
  pooler = undefined;
});

const bounds = { connections: 4, statement: 10_000 };

async function openBehind(
  mode: PoolMode,
  settings: readonly string[] = [],
  direct?: string,
): Promise<TestGateway> {
  pooler = await startPgBouncer(url, mode, settings);
  gateway = await openTestGateway(await openAt(pooler.url, bounds, direct));
  return gateway;
}

/** The state of each server session that the pooler assigns, which clients may have changed. */
async function leftInSessions(through: string, size: number): Promise<unknown[]> {
  const clients = Array.from({ length: size }, () => new pg.Client({ connectionString: through }));
  await Promise.all(clients.map((client) => client.connect()));
  // All at the same time, so that each has a session of its own.
  const found = await Promise.all(
    clients.map(async (client) => {
      await client.query('BEGIN');
      const { rows } = await client.query(`
        SELECT current_setting('statement_timeout') AS timeout,
          current_setting('idle_in_transaction_session_timeout') AS idle,
          current_setting('DateStyle') AS dates, current_setting('extra_float_digits') AS digits,
          ARRAY(SELECT pg_listening_channels()) AS channels, pg_sleep(0.1)::text AS slept`);
      await client.query('COMMIT');
      return rows[0];
    }),
  );
  await Promise.all(clients.map((client) => client.end()));
  return found;
}

/** Everything that a gateway does, with many requests at once. */
async function useAll(asked: TestGateway): Promise<void> {
  const { id, token } = await createToken(database.pool, 'alice', 'pooled');
  const paths = ['/users/me', '/dtt', '/dtt/templates', '/dtt/sessions', '/lkbx', '/lkbx/sessions', '/ossm'];
  const reads = Array.from({ length: 6 }, () => paths).flat();
  const responses = await Promise.all(reads.map((path) => rest(asked, token, path)));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  const queries = Array.from(
    { length: 10 },
    (_, first) => `{ dttSessions(first: ${first + 1}) { nodes { id segments { id } } } }`,
  );
  for (const { errors } of await Promise.all(queries.map((query) => graphqlOnce(asked, token, query))))
    expect(errors).toBeUndefined();
  for (const template of alice.dttTemplates) {
    expect((await postJson(asked, token, `/dtt/templates/${template}`, { isActive: true })).status).toBe(200);
    const { body } = await rest(asked, token, '/dtt/templates/active');
    expect(body.data).toMatchObject({ id: template });
  }
  await revokeToken(asked.database.pool, id);
  await expect.poll(async () => (await rest(asked, token, '/users/me')).status).toBe(401);
}

const readiness = async ({ url: origin }: TestGateway) => {
  const response = await fetch(`${origin}/readyz`);
  return { status: response.status, text: await response.text() };
};

describe('behind PgBouncer in transaction mode', () => {
  // The smaller the pool, the more clients share a session.
  it.each([1, 6])(
    'with %i sessions, all requests work, nothing is cached, and no setting is left in a session',
    async (size) => {
      const behind = await openBehind('transaction', [`default_pool_size = ${size}`]);
      await useAll(behind);
      expect(behind.feed.listening).toBe(false);
      expect(behind.responseCache.counters.hits).toBe(0);
      expect(behind.responseCache.usage().entries).toBe(0);
      expect(behind.log).toEqual([]);
      expect(await readiness(behind)).toEqual({
        status: 200,
        text: 'ready\nchange feed down; caching off\n',
      });
      const untouched = {
        timeout: '0',
        idle: '0',
        dates: 'ISO, MDY',
        digits: '1',
        channels: [],
        slept: '',
      };
      const left = await leftInSessions(pooler?.url ?? '', size);
      expect(left).toEqual(left.map(() => untouched));
    },
  );

  it('the gateway does not start when the sessions lack settings that it needs, and names them', async () => {
    const name = new URL(url).pathname.slice(1);
    await database.pool.query(`ALTER DATABASE ${name} SET DateStyle = 'SQL, DMY'`);
    await database.pool.query(`ALTER DATABASE ${name} SET extra_float_digits = 0`);
    pooler = await startPgBouncer(url, 'transaction');
    try {
      await expect(openAt(pooler.url, bounds)).rejects.toThrow(
        /names a pooler.* Run ALTER ROLE postgres SET DateStyle = 'ISO'; ALTER ROLE postgres SET extra_float_digits = '1'; and have/,
      );
    } finally {
      await database.pool.query(`ALTER DATABASE ${name} RESET DateStyle`);
      await database.pool.query(`ALTER DATABASE ${name} RESET extra_float_digits`);
    }
  });
});

it.each([
  ['behind PgBouncer in session mode', 'session', undefined],
  ['with a direct connection past PgBouncer in transaction mode', 'transaction', url],
] as const)(
  'where the gateway hears of changes %s, all requests work, responses are cached, and changes are received',
  async (_, mode, direct) => {
    const behind = await openBehind(mode, [], direct);
    await useAll(behind);
    expect(behind.feed.listening).toBe(true);
    expect(await readiness(behind)).toEqual({ status: 200, text: 'ready\n' });
    for (let time = 0; time < 2; time++) await rest(behind, alice.token, '/ossm');
    expect(behind.responseCache.counters.hits).toBeGreaterThan(0);
    const [id] = alice.ossmDevices;
    const chip = async () => (await rest(behind, alice.token, `/ossm/${id}`)).body.data;
    await chip();
    await database.pool.query(`UPDATE "OssmDevice" SET chip = 'new of ${mode}' WHERE id = ${id}`);
    await expect.poll(chip).toMatchObject({ chip: `new of ${mode}` });
  },
);

it('behind PgBouncer in statement mode the gateway does not start, and says what to change', async () => {
  pooler = await startPgBouncer(url, 'statement');
  await expect(openAt(pooler.url, bounds)).rejects.toThrow(
    /^DATABASE_URL names a pooler without transactions, but takes one with: set its pool_mode to transaction or session/,
  );
});
