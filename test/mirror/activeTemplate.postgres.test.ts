/** Which template is active, where the list of templates has two pages, between which another one may be activated. */

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { sync } from '../../src/mirror/sync.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { addUser, createMemoryUpstream, type MemoryUpstream, upstreamOf } from '../support/memoryUpstream.ts';

let database: TestDatabase;
let memoryUpstream: MemoryUpstream;
beforeAll(async () => {
  database = await openTestDatabase();
});
beforeEach(async () => {
  await database.pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
  memoryUpstream = createMemoryUpstream();
  addUser(memoryUpstream, 1);
  for (let id = 1; id <= 130; id++) memoryUpstream.dttTemplates.set(id, { ownerId: 1, version: 1 });
});
afterAll(() => database?.close());

const onFirstPage = 5;
const onSecondPage = 125;

function activate(id: number | null): void {
  const user = memoryUpstream.users.get(1);
  if (user) user.activeTemplate = id;
}

/** Reads the lists. @param meanwhile is done once the upstream has responded. @returns how often pages of templates were read. */
async function pull(meanwhile = (_path: string) => {}): Promise<number> {
  let pages = 0;
  const upstream = upstreamOf(memoryUpstream, 1);
  await sync({
    pool: database.pool,
    listsOnly: true,
    upstream: {
      ...upstream,
      async get(path) {
        const data = await upstream.get(path);
        if (path.startsWith('/dtt/templates?')) pages++;
        meanwhile(path);
        return data;
      },
    },
  });
  return pages;
}

const activeHere = async () =>
  (await database.client.user.findUniqueOrThrow({ where: { id: 1 } })).activeTemplateId;

it('a template that is activated while the list is read is found, even if its page was read before', async () => {
  activate(onSecondPage);
  await pull();
  expect(await activeHere()).toBe(onSecondPage);
  await pull((path) => {
    if (path === '/dtt/templates?limit=100&offset=0') activate(onFirstPage);
  });
  expect(await activeHere()).toBe(onFirstPage);
});

it('no template is active here once none is active upstream', async () => {
  activate(onSecondPage);
  await pull();
  activate(null);
  // Where none was found, both pages are read once more.
  expect(await pull()).toBe(4);
  expect(await activeHere()).toBe(null);
  expect(await pull()).toBe(2);
});
