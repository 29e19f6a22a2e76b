/** The demo account on a server, where there is no folder to store its token in. */

import { expect, it, onTestFinished } from 'vitest';
import { createToken, findToken } from '../../../src/auth/tokens.ts';
import { checkOnlyDemo, prepareDemo, resetDemo } from '../../../src/extensions/demo/demoAccount.ts';
import { openTestDatabase } from '../../support/gateway.ts';
import { runHere } from '../../support/runHere.ts';
import { databaseWith } from '../../support/setUp.ts';

const { database } = await databaseWith();
await prepareDemo(database, undefined);

const users = () =>
  database.client.user.findMany({ select: { id: true, username: true }, orderBy: { id: 'asc' } });

const isValid = async (token = '') => (await findToken(database.sql, token)) !== null;

it('prepareDemo gives the token of the account with the demo data, even where somebody else has the name demo', async () => {
  const { user } = database.client;
  const { id } = await user.update({ where: { username: 'demo' }, data: { username: 'renamed' } });
  const other = await user.create({ data: { username: 'demo', subscriptionTier: 'ultra' } });
  onTestFinished(async () => {
    await user.delete({ where: { id: other.id } });
    await user.update({ where: { id }, data: { username: 'demo' } });
  });
  const token = await prepareDemo(database, undefined);
  expect((await findToken(database.sql, token ?? ''))?.userId).toBe(id);
});

it('resetDemo loads the account with the ids of a new database, and leaves its tokens as they are', async () => {
  const token = await prepareDemo(database, undefined);
  const { token: revoked, id } = await createToken(database.pool, 'demo', 'revoked');
  await database.client.apiToken.update({ where: { id }, data: { revokedAt: new Date() } });
  const before = await users();
  await database.client.lockSession.deleteMany();
  await resetDemo(database.pool);
  expect(await users()).toEqual(before);
  expect(await database.client.lockSession.count()).toBeGreaterThan(0);
  expect(await Promise.all([token, revoked].map(isValid))).toEqual([true, false]);
  // The next id is one that no token has yet.
  expect(await isValid((await createToken(database.pool, 'demo', 'next')).token)).toBe(true);
});

const rejection = 'This database has users of its own';

it('resetDemo rejects a database with other users, and leaves the account as it is when loading fails', async () => {
  const { user } = database.client;
  await user.create({ data: { username: 'alice' } });
  await expect(resetDemo(database.pool)).rejects.toThrow(rejection);
  await user.delete({ where: { username: 'alice' } });
  await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO away');
  await expect(resetDemo(database.pool)).rejects.toThrow();
  await database.pool.query('ALTER TABLE away RENAME TO "OssmDevice"');
  expect(await database.client.user.count({ where: { username: 'demo' } })).toBe(1);
});

it('resetDemo rejects a database in which foreign tables refer to its users, and deletes nothing', async () => {
  await prepareDemo(database, undefined);
  await database.pool.query(`
    CREATE SCHEMA crm;
    CREATE TABLE crm.customer (user_id int CONSTRAINT customer_user REFERENCES "User"(id) ON DELETE CASCADE);
    INSERT INTO crm.customer SELECT id FROM "User" WHERE username = 'demo'`);
  try {
    const before = await users();
    await expect(resetDemo(database.pool)).rejects.toThrow('referenced in a foreign key');
    expect(await database.sql.run('SELECT user_id FROM crm.customer', [])).toHaveLength(1);
    expect(await users()).toEqual(before);
  } finally {
    await database.pool.query('DROP SCHEMA crm CASCADE');
  }
});

it('checkOnlyDemo and resetDemo reject users that have only the names of the demo account', async () => {
  const other = await openTestDatabase();
  try {
    for (const username of ['coach', 'demo']) {
      await other.client.user.create({ data: { username } });
      await expect(checkOnlyDemo(other.pool)).rejects.toThrow(rejection);
      await expect(resetDemo(other.pool)).rejects.toThrow(rejection);
    }
    expect(await other.client.user.count()).toBe(2);
    await other.client.user.deleteMany();
    await other.client.mirror.create({ data: { source: 'https://example.com' } });
    await expect(resetDemo(other.pool, [{ table: 'Mirror' }])).rejects.toThrow(
      'or accounts that live elsewhere',
    );
  } finally {
    await other.close();
  }
});

it('`demo` prints a new token each time, which replaces the one before, and none with --reset, after which the last one stays valid', async () => {
  const fresh = await openTestDatabase();
  onTestFinished(fresh.close);
  const DATABASE_URL = fresh.pool.options.connectionString ?? '';
  const tokens: string[] = [];
  const others: string[] = [];
  for (let time = 0; time < 2; time++) {
    const { code, stdout, stderr } = await runHere(['demo'], { DATABASE_URL });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'The demo account is there. Its token, in place of any that was printed before:\n',
    });
    tokens.push(stdout.trim());
    others.push((await createToken(fresh.pool, 'demo', `own ${time}`)).token);
  }
  const valid = () =>
    Promise.all([...tokens, ...others].map(async (each) => (await findToken(fresh.sql, each)) !== null));
  expect(await valid()).toEqual([false, true, true, true]);
  expect(await runHere(['demo', '--reset'], { DATABASE_URL })).toMatchObject({ code: 0, stdout: '' });
  expect(await valid()).toEqual([false, true, true, true]);
});
