/** What commands say on a server where their role may only read. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
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
])('a role that may only read is told so by %j, in a line', async (args, reason) => {
  const { code, stdout, stderr } = await runHere(args, { DATABASE_URL: url });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(
    new RegExp(
      `^The role of DATABASE_URL may not do that: ${reason}\\. Name one that may; docs/deployment\\.md has the rights that commands need\\.\n$`,
    ),
  );
});
