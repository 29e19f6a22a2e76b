/** How fresh an account is for several gateways over one database, whose clocks may differ. */

import { describe, expect, it } from 'vitest';
import type { TestDatabase, TestGateway } from '../../../support/gateway.ts';
import { arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const open = openForEachTest();
const lists = { path: /^\/dtt\/templates$/ };

const overGraphql = (gateway: TestGateway, token = alice) =>
  ask(gateway, token, '{ dttTemplate(databaseId: 1) { name } }');

it('a write through one gateway is read back once for all of them', async () => {
  const { gateway, openAnother, service, database } = await open();
  const another = await openAnother();
  for (const each of [gateway, another]) await arrive(each, alice);
  service.forgetRequests();
  expect((await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' })).status).toBe(200);
  await expect
    .poll(async () => (await database.pool.query('SELECT "writtenAt" FROM "MirroredAccount"')).rows)
    .toEqual([{ writtenAt: null }]);
  expect((await overGraphql(another)).body).toEqual({ data: { dttTemplate: { name: 'A new name' } } });
  expect(service.count('/dtt/templates')).toBe(1);
});

it('an account is read again for the next request if it was last refreshed in the future, by the database’s clock', async () => {
  const { gateway, openAnother, service, database } = await open();
  await arrive(gateway, alice);
  await database.pool.query(`UPDATE "MirroredAccount" SET "refreshedAt" = now() + interval '1 hour'`);
  const another = await openAnother();
  const template = service.world.templates.get(1);
  Object.assign(template ?? {}, { name: 'A new name', updatedAt: '2027-01-01T00:00:00.000Z' });
  const { body, headers } = await overGraphql(another);
  expect(body).toEqual({ data: { dttTemplate: { name: 'A new name' } } });
  expect(Number(headers.get('Age'))).toBeLessThan(60);
  const { rows } = await database.pool.query('SELECT "refreshedAt" <= now() AS past FROM "MirroredAccount"');
  expect(rows).toEqual([{ past: true }]);
});

describe('a clock of the database that was set', () => {
  const set = (database: TestDatabase, column: string, hours: number) =>
    database.pool.query(`UPDATE "MirroredAccount" SET "${column}" = now() + $1 * interval '1 hour'`, [hours]);

  it.each([-1, 2])('by %i hours after a refresh hides no write from another gateway', async (hours) => {
    const { gateway, openAnother, service, database } = await open();
    await arrive(gateway, alice);
    await set(database, 'refreshedAt', -hours);
    service.misbehave(faults.error500, lists);
    expect((await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' })).status).toBe(200);
    const another = await openAnother();
    expect((await overGraphql(another)).status).toBe(503);
    service.behave();
    await expect.poll(async () => (await overGraphql(another)).status).toBe(200);
    expect((await overGraphql(another)).body).toEqual({ data: { dttTemplate: { name: 'A new name' } } });
  });

  it('after a write lets any gateway read it back, and during a run does not stop the next runs', async () => {
    const { gateway, openAnother, database } = await open();
    await arrive(gateway, alice);
    for (const hours of [-1, 2]) {
      await set(database, 'writtenAt', -hours);
      expect((await overGraphql(await openAnother())).status).toBe(200);
      await database.pool.query(`UPDATE "MirroredAccount" SET "heldBy" = 'lists of another'`);
      await set(database, 'heldUntil', -hours);
      const began = performance.now();
      const { headers } = await ask(gateway, alice, '{ viewer { id } }', { 'Cache-Control': 'no-cache' });
      expect(Number(headers.get('Age') ?? Number.NaN) * 1_000).toBeLessThanOrEqual(performance.now() - began);
      const name = `Written ${hours}`;
      expect((await patch(gateway, alice, '/dtt/templates/1', { name })).status).toBe(200);
      expect((await overGraphql(gateway)).body).toEqual({ data: { dttTemplate: { name } } });
    }
  });
});
