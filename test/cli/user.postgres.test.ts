/** Commands over a PostgreSQL server, also with a role that may only read. */

import { expect, it, onTestFinished } from 'vitest';
import { withoutPassword } from '../../src/errors.ts';
import { newServerDatabase } from '../support/gateway.ts';
import { runHere } from '../support/runHere.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith('demo');

const urlWith = (change: Partial<URL>) =>
  Object.assign(new URL(database.pool.options.connectionString ?? ''), change).href;

it('a role that may only read gets one line with the reason', async () => {
  const role = `reader_${process.pid}`;
  await database.pool.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'reader'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`,
  );
  onTestFinished(async () => void (await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
  const DATABASE_URL = urlWith({ username: role, password: 'reader' });
  for (const args of [
    ['user', 'create', 'me'],
    ['token', 'create', '--user', 'demo', '--name', 'x'],
  ])
    expect(await runHere(args, { DATABASE_URL })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'The role of DATABASE_URL may not do that: permission denied for table User\n',
    });
});

it('a role that may not use the schema gets the reason, rather than that nothing is in the database', async () => {
  const role = `stranger_${process.pid}`;
  await database.pool.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'x'; REVOKE USAGE ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO CURRENT_USER`,
  );
  onTestFinished(
    async () => void (await database.pool.query(`GRANT USAGE ON SCHEMA public TO PUBLIC; DROP ROLE ${role}`)),
  );
  const DATABASE_URL = urlWith({ username: role, password: 'x' });
  expect(await runHere(['user', 'list'], { DATABASE_URL })).toEqual({
    code: 1,
    stdout: '',
    // Where there is doctor, its name follows.
    stderr: expect.stringContaining(
      `DATABASE_URL cannot be used: its search_path is "$user", public, and it has no schema that the role "${role}" may use`,
    ),
  });
});

it('a command that does not serve has no complaint about settings that a gateway could not serve with', async () => {
  const gateway = { PERSISTED_OPERATIONS: 'only', METRICS_PORT: '4000', UPSTREAM_TOKEN: 'x' };
  const { code, stdout } = await runHere(['user', 'list'], { DATABASE_URL: urlWith({}), ...gateway });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('demo') });
});

it('an empty database is not changed by a command that only reads', async () => {
  const DATABASE_URL = await newServerDatabase();
  // The second time as well.
  for (let time = 0; time < 2; time++)
    expect(await runHere(['user', 'list'], { DATABASE_URL })).toEqual({
      code: 1,
      stdout: '',
      stderr: `Nothing of Dovetail's is in the database ${withoutPassword(DATABASE_URL)}. Run this where the gateway was started, or set DATA_DIR or DATABASE_URL as it has them.\n`,
    });
});

it('the next command has no URL with a password in it, which the environment has', async () => {
  const DATABASE_URL = urlWith({});
  const { stderr } = await runHere(['user', 'create', 'me'], { DATABASE_URL });
  expect(stderr).toMatch(
    /\. Next: npx dovetail-gateway token create --user me --name laptop --scope manage\n$/,
  );
});
