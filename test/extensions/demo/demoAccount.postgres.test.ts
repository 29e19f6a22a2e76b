/** The demo account on a server, where there is no folder to store its token in. */

import { expect, it, onTestFinished } from 'vitest';
import { createToken, findToken } from '../../../src/auth/tokens.ts';
import { checkOnlyDemo, prepareDemo } from '../../../src/extensions/demo/demoAccount.ts';
import { runHere } from '../../support/runHere.ts';
import { databaseWith } from '../../support/setUp.ts';

const { database } = await databaseWith();
await prepareDemo(database, undefined);

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

const rejection = 'This database has users of its own';

it('checkOnlyDemo rejects users that have only the names of the demo account', async () => {
  const { database: other } = await databaseWith();
  for (const username of ['coach', 'demo']) {
    await other.client.user.create({ data: { username } });
    await expect(checkOnlyDemo(other.pool)).rejects.toThrow(rejection);
  }
  expect(await other.client.user.count()).toBe(2);
  await other.client.user.deleteMany();
  await other.client.mirror.create({ data: { source: 'https://example.com' } });
  await expect(checkOnlyDemo(other.pool, [{ table: 'Mirror' }])).rejects.toThrow(
    'or accounts that live elsewhere',
  );
});

it('`demo` prints a new token each time, which replaces the one before', async () => {
  const { database: fresh } = await databaseWith();
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
});

it('`demo` rejects users beside those of the demo account', async () => {
  await database.client.user.create({ data: { username: 'alice' } });
  const exit = await runHere(['demo'], { DATABASE_URL: database.pool.options.connectionString ?? '' });
  expect(exit).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(rejection) });
});
