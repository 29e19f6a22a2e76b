/** Responses are the same whatever defaults a server, a database or a role has for sessions. */

import { afterAll, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { newServerDatabase, openAt, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { databaseWith, gatewayBeside } from '../support/setUp.ts';

const role = `hostile_${process.pid}_${Date.now()}`;
const defaults = {
  DateStyle: 'SQL, DMY',
  TimeZone: 'Asia/Kathmandu',
  IntervalStyle: 'sql_standard',
  extra_float_digits: '-15',
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  escape_string_warning: 'on',
  array_nulls: 'off',
  client_encoding: 'LATIN1',
  client_min_messages: 'debug1',
  default_transaction_isolation: 'serializable',
  default_transaction_read_only: 'on',
  row_security: 'off',
  xmloption: 'document',
  plan_cache_mode: 'force_generic_plan',
};

const { database, alice } = await databaseWith('alice');
await database.pool.query(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD 'postgres'`);
for (const [name, value] of Object.entries(defaults))
  await database.pool.query(`ALTER ROLE ${role} SET ${name} = '${value}'`);
await database.pool.query(`ALTER ROLE ${role} SET search_path = public, pg_catalog`);
// Numbers that would lose digits, and a text that Latin-1 cannot encode.
await database.pool.query(
  `UPDATE "DttTemplate" SET "targetDepth" = 0.1 + 0.2, "targetWindow" = 1e15 + 0.3, name = 'Größe 中文 🙂 \\ ''' WHERE "ownerId" = ${alice.userId}`,
);
await database.pool.query(`UPDATE "TrainerSegment" SET "percentGrade" = 1.0 / 3, "speedMeasured" = 1e-7 / 3`);
const url = new URL(database.pool.options.connectionString ?? '');
url.username = role;
const bounds = { connections: 3, statement: 10_000 };
const usual = await gatewayBeside(database);
const hostile = await openTestGateway(await openAt(url.href, bounds));
afterAll(hostile.close);

const ask = async ({ url }: TestGateway, path: string, body?: unknown) => {
  const response = await fetch(url + path, {
    headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
};

const nested = `{ dttSessions { nodes { name createdAt segments { gradePercent speedMeasured createdAt } template { name targetDepth } } }
  dttTemplates { nodes { name targetDepth targetWindow createdAt updatedAt segments { type durationSeconds } } }
  lockSessions { nodes { startedAt durationSeconds segments { createdAt } } } devices { nodes { id macAddress } } }`;

it('a role with hostile defaults gets the same responses', async () => {
  const paths = ['/dtt/templates', '/dtt/sessions', '/lkbx/sessions', '/dtt', '/users/me'];
  const requests: [path: string, body?: unknown][] = [
    ...paths.map((path): [string] => [`/api/v1${path}`]),
    // The second time it is compiled.
    ['/graphql', { query: nested }],
    ['/graphql', { query: nested }],
  ];
  for (const [path, body] of requests) {
    const expected = await ask(usual, path, body);
    expect(expected).toMatchObject({ status: 200, text: expect.not.stringContaining('"errors"') });
    expect(await ask(hostile, path, body)).toEqual(expected);
  }
  const writes = await hostile.database.pool.query(
    `SELECT current_setting('default_transaction_isolation') AS level, current_setting('default_transaction_read_only') AS read_only`,
  );
  expect(writes.rows).toEqual([{ level: 'read committed', read_only: 'off' }]);
});

it('a role with hostile defaults migrates an empty database', async () => {
  const { href } = Object.assign(new URL(await newServerDatabase()), { username: role });
  expect(await migrate({ connectionString: href })).not.toEqual([]);
});
