/** Commands over a PostgreSQL server, also with a role that may only read. */

import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { withoutPassword } from '../../src/errors.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';

let database: TestDatabase;
let url: string;
const role = `reader_${process.pid}`;
beforeAll(async () => {
  database = await openTestDatabase();
  await prepareDemo(database, undefined);
  await database.pool.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'reader'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`,
  );
  const address = new URL(database.pool.options.connectionString ?? '');
  Object.assign(address, { username: role, password: 'reader' });
  url = address.href;
});
afterAll(async () => {
  await database?.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  await database?.close();
});

it.each([
  [['user', 'create', 'me'], 'permission denied for table User'],
  [['user', 'tier', 'demo', 'free'], 'permission denied for table User'],
  [['token', 'create', '--user', 'demo', '--name', 'x'], 'permission denied for table User'],
  [['demo', '--reset'], 'permission denied for table User'],
])('a role that may only read gets one line with the reason from %j', async (args, reason) => {
  const { code, stdout, stderr } = await runHere(args, { DATABASE_URL: url });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(
    new RegExp(
      `^The role of DATABASE_URL may not do that: ${reason}\\. Name one that may; docs/deployment\\.md has the rights that commands need\\.\n$`,
    ),
  );
});

it.each([[['user', 'list']], [['token', 'list', '--user', 'me']]])(
  'an empty database is not changed by %j',
  async (args) => {
    const name = `empty_${Date.now()}`;
    await database.pool.query(`CREATE DATABASE ${name}`);
    const address = new URL(database.pool.options.connectionString ?? '');
    address.pathname = `/${name}`;
    try {
      expect(await runHere(args, { DATABASE_URL: address.href })).toEqual({
        code: 1,
        stdout: '',
        stderr: `Nothing of Dovetail's is in the database ${withoutPassword(address.href)}. Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.\n`,
      });
      const client = new pg.Client({ connectionString: address.href });
      await client.connect();
      const { rows } = await client.query(
        `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`,
      );
      await client.end();
      expect(rows).toEqual([]);
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  },
);

it('`demo` prints a new token each time, and says from the second time on that it replaces the one before', async () => {
  const fresh = await openTestDatabase();
  const DATABASE_URL = fresh.pool.options.connectionString ?? '';
  try {
    const tokens = new Set<string>();
    for (const note of ['', ', in place of the one that was printed before']) {
      const { code, stdout, stderr } = await runHere(['demo'], { DATABASE_URL });
      expect({ code, stderr }).toEqual({ code: 0, stderr: `The demo account is there. Its token${note}:\n` });
      tokens.add(stdout);
    }
    expect(tokens.size).toBe(2);
  } finally {
    await fresh.close();
  }
});
