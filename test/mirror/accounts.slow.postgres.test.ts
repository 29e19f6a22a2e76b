/** Accounts of one mirror that are pulled concurrently, by several gateways. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { forgetAccount } from '../../src/mirror/forget.ts';
import { sync } from '../../src/mirror/sync.ts';
import { openBeside, openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import {
  addUser,
  createMemoryUpstream,
  type MemoryUpstream,
  templatesOf,
  upstreamOf,
} from '../support/memoryUpstream.ts';

let database: TestDatabase;
let beside: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
  beside = await openBeside(database);
});
beforeEach(() => database.pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE'));
afterAll(async () => {
  await beside?.close();
  await database?.close();
});

const accounts = Array.from({ length: 20 }, (_, index) => index + 1);
const templates = Array.from({ length: 12 }, (_, index) => index + 1);

/** Each template is owned by one of the accounts and imported by half of the others, and each trainer has an owner. */
function fill(memoryUpstream: MemoryUpstream, round: number): void {
  for (const id of templates) {
    // From round to round some move, some are gone, and some come back.
    if ((id + round) % 7 === 0) memoryUpstream.dttTemplates.delete(id);
    else
      memoryUpstream.dttTemplates.set(id, {
        ownerId: ((id + (id % 3 === 0 ? round : 0)) % 20) + 1,
        version: round,
      });
    memoryUpstream.dttDevices.set(id, {
      ownerId: ((id + (id % 2 === 0 ? round : 0)) % 20) + 1,
      version: round,
    });
  }
  for (const [id, { imports }] of memoryUpstream.users) {
    imports.clear();
    for (const template of templates)
      if ((id + template + round) % 2 === 0 && memoryUpstream.dttTemplates.has(template))
        imports.add(template);
    for (const place of [1, 2, 3])
      memoryUpstream.dttSessions.set(id * 10 + place, {
        ownerId: id,
        version: round,
        trainerId: ((id + place) % templates.length) + 1,
        templateId: ((id * place) % templates.length) + 1,
      });
  }
}

const pullWith = (pool: TestDatabase['pool'], memoryUpstream: MemoryUpstream, id: number) =>
  sync({ pool, upstream: upstreamOf(memoryUpstream, id), full: true });

describe('accounts that are pulled concurrently', () => {
  it('do not disturb each other, and each has what it lists', async () => {
    const memoryUpstream = createMemoryUpstream();
    for (const id of accounts) addUser(memoryUpstream, id);
    for (const round of [1, 2]) {
      fill(memoryUpstream, round);
      const reports = await Promise.all(
        accounts.map((id) => pullWith((id % 2 ? database : beside).pool, memoryUpstream, id)),
      );
      expect(reports.filter((report) => report === undefined)).toEqual([]);
      // What has moved between accounts may depend on the order of concurrent pulls, which another pull corrects.
      if (round > 1) for (const id of accounts) await pullWith(database.pool, memoryUpstream, id);
      for (const id of accounts) {
        const entries = await database.client.dttLibraryEntry.findMany({
          where: { userId: id },
          orderBy: { templateId: 'asc' },
          include: { template: { include: { segments: true } } },
        });
        expect(entries.map(({ templateId }) => templateId)).toEqual(templatesOf(memoryUpstream, id));
        for (const { templateId, template, importedAt } of entries) {
          expect(template.ownerId).toBe(memoryUpstream.dttTemplates.get(templateId)?.ownerId);
          expect(importedAt === null).toBe(template.ownerId === id);
          expect(template.segments).toMatchObject([{ duration: round }]);
        }
        const devices = await database.client.dttDevice.findMany({ where: { ownerId: id } });
        expect(devices.map((device) => device.id).sort((a, b) => a - b)).toEqual(
          [...memoryUpstream.dttDevices]
            .filter(([, { ownerId }]) => ownerId === id)
            .map(([device]) => device),
        );
        expect(
          await database.client.dttSession.count({ where: { ownerId: id, detailsPending: false } }),
        ).toBe(3);
      }
    }
  }, 60_000);
});

describe('a pull that fails', () => {
  it('is completed by the next, whichever request failed, with nothing lost and nothing doubled', async () => {
    const memoryUpstream = createMemoryUpstream();
    for (const id of [1, 2]) addUser(memoryUpstream, id);
    fill(memoryUpstream, 1);
    await pullWith(database.pool, memoryUpstream, 2);
    await pullWith(database.pool, memoryUpstream, 1);
    const expected = await rowsOf(1);
    let fatal = 0;
    let isWhole = false;
    while (!isWhole) {
      fatal++;
      await forgetAccount(database.pool, { id: 1 });
      const requests: string[] = [];
      const upstream = upstreamOf(memoryUpstream, 1, requests);
      const cut = {
        ...upstream,
        get: (path: string) =>
          requests.length < fatal ? upstream.get(path) : Promise.reject(new Error('killed')),
      };
      isWhole = await sync({ pool: database.pool, upstream: cut }).then(
        () => true,
        () => false,
      );
      await sync({ pool: database.pool, upstream });
      expect(await rowsOf(1), `cut off at request ${fatal}`).toEqual(expected);
    }
    expect(fatal).toBeGreaterThan(10);
  }, 60_000);

  async function rowsOf(userId: number) {
    const { client } = database;
    return Promise.all([
      client.dttLibraryEntry.findMany({
        where: { userId },
        orderBy: { templateId: 'asc' },
        select: { template: { include: { segments: true } } },
      }),
      client.dttSession.findMany({
        where: { ownerId: userId },
        orderBy: { id: 'asc' },
        include: { segments: true },
      }),
      client.dttDevice.findMany({ where: { ownerId: userId }, orderBy: { id: 'asc' } }),
    ]);
  }
});
