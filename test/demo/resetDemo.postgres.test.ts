/** The demo account on a server: there is no folder to keep its token in. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createToken, findToken } from '../../src/auth/tokens.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { checkOnlyDemo, resetDemo } from '../../src/demo/resetDemo.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

const isValid = async (token = '') => (await findToken(database.sql, token)) !== null;

it('has a new token each time that it is asked for, in place of the last, and others stay', async () => {
  const first = await prepareDemo(database, undefined);
  const { token: own } = await createToken(database.client, 'demo', 'own');
  const second = await prepareDemo(database, undefined);
  expect(await Promise.all([first, second, own].map(isValid))).toEqual([false, true, true]);
});

it('is loaded anew with the numbers of a new database, and its tokens stay valid', async () => {
  const token = await prepareDemo(database, undefined);
  const { token: revoked, id } = await createToken(database.client, 'demo', 'revoked');
  await database.client.apiToken.update({ where: { id }, data: { revokedAt: new Date() } });
  const ids = () => database.sql.run(`SELECT id, username FROM "User" ORDER BY id`, []);
  const before = await ids();
  await database.pool.query('DELETE FROM "LockSession"');
  await resetDemo(database.pool);
  expect(await ids()).toEqual(before);
  expect(await database.sql.count('LockSession', {})).toBeGreaterThan(0);
  // As the command does it, which prints a token of its own.
  const printed = await prepareDemo(database, undefined, { keepsTokens: true });
  expect(await Promise.all([token, revoked, printed].map(isValid))).toEqual([true, false, true]);
  // The next number is one that no token has.
  expect(await isValid((await createToken(database.client, 'demo', 'next')).token)).toBe(true);
});

it('is not loaded anew where somebody else has data, nor does it lose any when loading fails', async () => {
  const { user, dttTemplate } = database.client;
  const refused = 'This database has users or records of its own';
  await user.create({ data: { username: 'alice' } });
  await expect(resetDemo(database.pool)).rejects.toThrow(refused);
  await user.delete({ where: { username: 'alice' } });
  // By their names the users are the demo account's, and by what they have they are not.
  const own = { name: 'Own', targetDepth: 1, targetWindow: 1 };
  const { id: ownerId } = await user.findUniqueOrThrow({ where: { username: 'coach' } });
  const { id } = await dttTemplate.create({ data: { ...own, bubbleId: 'own', ownerId } });
  await expect(resetDemo(database.pool)).rejects.toThrow(refused);
  await dttTemplate.delete({ where: { id } });
  await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO away');
  await expect(resetDemo(database.pool)).rejects.toThrow();
  await database.pool.query('ALTER TABLE away RENAME TO "OssmDevice"');
  expect(await database.client.user.count({ where: { username: 'demo' } })).toBe(1);
});

it('is not loaded anew where tables of somebody else refer to its users, which lose nothing', async () => {
  await prepareDemo(database, undefined);
  await database.pool.query(`
    CREATE SCHEMA crm;
    CREATE TABLE crm.customer (user_id int CONSTRAINT customer_user REFERENCES "User"(id) ON DELETE CASCADE);
    INSERT INTO crm.customer SELECT id FROM "User" WHERE username = 'demo'`);
  try {
    const before = await database.sql.run('SELECT id, username FROM "User" ORDER BY id', []);
    await expect(resetDemo(database.pool)).rejects.toThrow(
      "Tables that are not Dovetail's refer to its users or records, and would lose what they refer to: crm.customer (customer_user). Drop these foreign keys first",
    );
    expect(await database.sql.run('SELECT user_id FROM crm.customer', [])).toHaveLength(1);
    expect(await database.sql.run('SELECT id, username FROM "User" ORDER BY id', [])).toEqual(before);
  } finally {
    await database.pool.query('DROP SCHEMA crm CASCADE');
  }
});

it('is not what users are who are only called so', async () => {
  const other = await openTestDatabase();
  try {
    for (const username of ['coach', 'demo']) {
      await other.client.user.create({ data: { username } });
      await expect(checkOnlyDemo(other.pool)).rejects.toThrow(
        'This database has users or records of its own',
      );
      await expect(resetDemo(other.pool)).rejects.toThrow('This database has users or records of its own');
    }
    expect(await other.client.user.count()).toBe(2);
  } finally {
    await other.close();
  }
});
