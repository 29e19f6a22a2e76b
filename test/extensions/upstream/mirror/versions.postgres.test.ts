/** Which version of a record a run stores if the upstream goes back to an older one, or its list differs from the record. */

import { beforeEach, describe, expect, it } from 'vitest';
import { listed, mirrorOfMemory, type Respond } from '../support/memoryUpstream.ts';

const { database, memory, pull } = await mirrorOfMemory(1, 2);
beforeEach(() => void memory.dttTemplates.set(7, { ownerId: 1, version: 5 }));

const template = () =>
  database.client.dttTemplate.findUniqueOrThrow({ where: { id: 7 }, include: { segments: true } });

it('a template with an older time of change by its id than in the list gets its details', async () => {
  const respond: Respond = (path, own) =>
    path === '/dtt/templates/7' ? { ...Object(own), updatedAt: '2026-01-01T00:00:00Z' } : own;
  await pull(1, { respond });
  expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 5 }] });
});

it.each([false, true])(
  'a template that goes back to an older version upstream does so in the mirror, in a run with full: %s',
  async (full) => {
    memory.users.get(2)?.imports.add(7);
    await pull(1);
    await pull(2);
    memory.dttTemplates.set(7, { ownerId: 1, version: 3 });
    await pull(2, { full });
    expect(await template()).toMatchObject({ name: 'template 7, version 3', segments: [{ duration: 3 }] });
  },
);

it('details that become outdated while a run reads them, by a run of another account, are left to the next run', async () => {
  memory.users.get(2)?.imports.add(7);
  await pull(1, { listsOnly: true });
  let times = 0;
  const respond: Respond = async (path, own) => {
    if (path !== '/dtt/templates/7' || times++ > 20) return own;
    memory.dttTemplates.set(7, { ownerId: 1, version: 5 + times });
    await pull(1, { listsOnly: true });
    return own;
  };
  await pull(2, { respond });
  expect(times).toBe(1);
  expect(await template()).toMatchObject({ name: 'template 7, version 6', detailsPending: true });
  await pull(2);
  expect(await template()).toMatchObject({ detailsPending: false, segments: [{ duration: 6 }] });
});

it('details of a version that the upstream takes back are read again by the next run', async () => {
  const set = (version: number) =>
    memory.dttSessions.set(3, { ownerId: 1, version, trainerId: 4, templateId: null });
  set(1);
  await pull(1, {
    respond(path, own) {
      if (path.startsWith('/dtt/sessions?')) set(2);
      if (path === '/dtt/sessions/3') set(1);
      return own;
    },
  });
  const session = () =>
    database.client.dttSession.findUniqueOrThrow({ where: { id: 3 }, include: { segments: true } });
  expect(await session()).toMatchObject({ name: 'version 2', segments: [{ repsMeasured: 2 }] });
  await pull(1);
  expect(await session()).toMatchObject({ name: 'version 1', segments: [{ repsMeasured: 1 }] });
});

it('a value is null until the upstream sends it, and once the upstream sends null', async () => {
  memory.dttDevices.set(4, { ownerId: 1, version: 1 });
  const having = (fields: object, which: number) =>
    listed('/dtt', (each) => (each.id === which ? { ...each, ...fields } : each));
  const device = () => database.client.dttDevice.findUniqueOrThrow({ where: { id: 4 } });
  await pull(1);
  expect(await device()).toMatchObject({ apiHits: null, macAddress: null, createdDate: null });
  expect(await template()).toMatchObject({ description: null, tagline: null, message: null });
  const user = await database.client.user.findUniqueOrThrow({ where: { id: 1 } });
  const known = Object.entries(user).filter(([, value]) => value !== null);
  expect(Object.fromEntries(known)).toEqual({ id: 1, username: 'user 1', subscriptionTier: 'ultra' });
  await pull(1, { respond: having({ apiHits: 7 }, 4) });
  // Another row of the same statement has the column.
  for (const id of [4, 5]) memory.dttDevices.set(id, { ownerId: 1, version: 2 });
  await pull(1, { respond: having({ apiHits: 9 }, 5) });
  expect(await device()).toMatchObject({ serialNumber: 'serial 2', apiHits: 7 });
  await pull(1, { respond: having({ apiHits: null }, 4) });
  expect(await device()).toMatchObject({ apiHits: null });
});

it('a column that a newer release has added beside this one is left to its default', async () => {
  await database.pool.query('ALTER TABLE "DttSession" ADD COLUMN later INT NOT NULL DEFAULT 4');
  memory.dttSessions.set(3, { ownerId: 1, version: 1, trainerId: 4, templateId: null });
  await pull(1);
  const { rows } = await database.pool.query('SELECT later FROM "DttSession"');
  await database.pool.query('ALTER TABLE "DttSession" DROP COLUMN later');
  expect(rows).toEqual([{ later: 4 }]);
});

describe('a record whose list says less of it than the upstream does by its id', () => {
  /** Responds with these fields in the list of templates, and with others by the ids. */
  const rewritten = (said: object, whole: object) => (path: string, data: unknown) =>
    path.startsWith('/dtt/templates/')
      ? { ...Object(data), ...whole }
      : listed('/dtt/templates', (each) => ({ ...each, ...said }))(path, data);
  /** The ids of the templates whose details were read. */
  async function detailsRead(id: number, respond: Respond): Promise<string[]> {
    const requests: string[] = [];
    await pull(id, { respond, requests });
    return requests.filter((path) => path.startsWith('/dtt/templates/'));
  }

  it.each<[string, object, object, object]>([
    ['rounds a number', { targetDepth: 5 }, { targetDepth: 5.25 }, { targetDepth: 6 }],
    ['has another name', { name: 'short' }, { name: 'long' }, { name: 'shorter' }],
  ])(
    'is read again only once the list says something else, if the list %s',
    async (_, said, whole, later) => {
      memory.users.get(2)?.imports.add(7);
      expect(await detailsRead(1, rewritten(said, whole))).toEqual(['/dtt/templates/7']);
      // Once more, since the list may have been older. Another account that sees the same template has the same record.
      expect(await detailsRead(1, rewritten(said, whole))).toEqual(['/dtt/templates/7']);
      for (const id of [2, 1, 2, 1]) expect(await detailsRead(id, rewritten(said, whole))).toEqual([]);
      const before = await template();
      expect(JSON.parse(JSON.stringify(before))).toMatchObject(JSON.parse(JSON.stringify(whole)));
      for (const id of [1, 2])
        expect(await detailsRead(id, rewritten(later, whole))).toEqual(['/dtt/templates/7']);
      expect(await detailsRead(1, rewritten(later, whole))).toEqual([]);
    },
  );
});
