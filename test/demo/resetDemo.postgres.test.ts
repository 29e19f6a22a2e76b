/** The demo account on a server: there is no folder to keep its token in. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createToken, findToken } from '../../src/auth/tokens.ts';
import { prepareDemo } from '../../src/demo/demoAccount.ts';
import { resetDemo } from '../../src/demo/resetDemo.ts';
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
  expect(await Promise.all([token, revoked].map(isValid))).toEqual([true, false]);
  // The next number is one that no token has.
  expect(await isValid((await createToken(database.client, 'demo', 'next')).token)).toBe(true);
});

it('is not loaded anew where somebody else has data, nor does it lose any when loading fails', async () => {
  await database.client.user.create({ data: { username: 'alice' } });
  await expect(resetDemo(database.pool)).rejects.toThrow('This database has a user of its own');
  await database.client.user.delete({ where: { username: 'alice' } });
  await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO away');
  await expect(resetDemo(database.pool)).rejects.toThrow();
  await database.pool.query('ALTER TABLE away RENAME TO "OssmDevice"');
  expect(await database.client.user.count({ where: { username: 'demo' } })).toBe(1);
});
