/** Pulls of accounts of one mirror that fail. */

import { expect, it } from 'vitest';
import { forgetAccount } from '../../../../src/extensions/upstream/mirror/forget.ts';
import { sync } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { databaseWith } from '../../../support/setUp.ts';
import { addUser, createMemoryUpstream, type MemoryUpstream, upstreamOf } from '../support/memoryUpstream.ts';

const { database } = await databaseWith();

const templates = Array.from({ length: 6 }, (_, index) => index + 1);

/** Each template and each trainer is owned by one of the accounts, and half of the templates are imported by others. */
function fill(memoryUpstream: MemoryUpstream): void {
  for (const id of templates) {
    memoryUpstream.dttTemplates.set(id, { ownerId: (id % 3) + 1, version: 1 });
    memoryUpstream.dttDevices.set(id, { ownerId: (id % 2) + 1, version: 1 });
  }
  for (const [id, { imports }] of memoryUpstream.users) {
    for (const template of templates) if ((id + template) % 2 === 0) imports.add(template);
    for (const place of [1, 2, 3])
      memoryUpstream.dttSessions.set(id * 10 + place, {
        ownerId: id,
        version: 1,
        trainerId: id + place,
        templateId: id * place,
      });
  }
}

it('a pull that fails is completed by the next, whichever request failed, with nothing lost and nothing doubled', async () => {
  const memoryUpstream = createMemoryUpstream();
  for (const id of [1, 2]) addUser(memoryUpstream, id);
  fill(memoryUpstream);
  for (const id of [2, 1]) await sync({ pool: database.pool, upstream: upstreamOf(memoryUpstream, id) });
  const expected = await rowsOf(1);
  let fatal = -1;
  let isWhole = false;
  while (!isWhole) {
    // To be quick, only every other request is tried.
    fatal += 2;
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
}, 180_000);

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
