/** A gateway of a mirror that has not heard, or not yet, what another gateway over the same database has announced. */

import { expect, it } from 'vitest';
import { createSignal } from '../../../../src/database/waiting.ts';
import { createFakeFeed } from '../../../support/feed.ts';
import type { TestGateway } from '../../../support/gateway.ts';
import { arrive, ask, type FrontedService, openForEachTest, patch } from '../support/frontedService.ts';

const alice = 'token-of-alice';
const waits = { arrival: 10_000, freshness: 300, awakening: 300 };
const open = openForEachTest();

async function read(gateway: TestGateway, headers: Record<string, string> = {}) {
  const query = '{ dttTemplate(databaseId: 1) { name } }';
  const { status, headers: said, body } = await ask(gateway, alice, query, headers);
  return { status, age: said.get('Age'), name: body.data?.dttTemplate?.name };
}

/** Has requests for lists fail from now on: all of them, or those of a path. */
function hideLists({ service }: FrontedService, path?: RegExp): void {
  const failure = { status: 500, body: { ok: false, error: 'broken' } };
  service.misbehave(
    { after: (reply, { method }) => (method === 'GET' ? failure : reply) },
    path ? { path } : undefined,
  );
}

it.each([
  ['at a gateway whose feed is down', 'down'],
  ['at one whose feed may have missed something', 'back'],
  ['at one whose feed is late, for a client that sends the position of the write', 'late'],
])('a write that has not been read back is not hidden by older data %s', async (_, state) => {
  const fronted = await open({ waits });
  const { gateway, openAnother } = fronted;
  const { feed, falter, announceAll } = createFakeFeed();
  if (state === 'down') falter();
  const other = await openAnother({}, feed);
  await arrive(gateway, alice);
  await arrive(other, alice);
  expect((await read(other)).status).toBe(200);
  hideLists(fronted);
  let headers: Record<string, string> = {};
  // The second write is passed on while the first one has not been read back.
  for (const name of ['Another name', 'A new name']) {
    const written = await patch(gateway, alice, '/dtt/templates/1', { name });
    const position = written.headers.get('Dovetail-Position') ?? '';
    expect([written.status, position !== '']).toEqual([200, true]);
    if (state === 'late') headers = { 'Dovetail-Position': position };
    if (state === 'back') announceAll();
  }
  for (let times = 0; times < 2; times++)
    expect(await read(other, headers)).toEqual({ status: 503, age: null, name: undefined });
  fronted.service.behave();
  await expect.poll(() => read(other, headers)).toMatchObject({ status: 200, name: 'A new name' });
});

it('a write that was announced while another gateway read the lists is not hidden by what it had read', async () => {
  const fronted = await open({ waits: { ...waits, freshness: 10_000 } });
  const { gateway, service, openAnother } = fronted;
  const other = await openAnother();
  await arrive(gateway, alice);
  await arrive(other, alice);
  const reached = createSignal();
  const end = createSignal();
  const hold = async <Reply>(reply: Reply) => {
    reached.settle();
    await end.promise;
    return reply;
  };
  // It is read after the templates.
  service.misbehave({ after: hold }, { path: /^\/dtt\/sessions$/ });
  const reading = read(other, { 'Cache-Control': 'no-cache' });
  await reached.promise;
  expect((await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' })).status).toBe(200);
  // Nobody reads the write back.
  hideLists(fronted, /^\/dtt\/templates$/);
  end.settle();
  expect((await reading).status).toBe(200);
  expect(await read(other)).toEqual({ status: 503, age: null, name: undefined });
});

it('a response after a refresh has what is here by then, also if another process has brought it, and the feed is late', async () => {
  const { gateway, service, database, openAnother } = await open();
  const other = await openAnother({}, createFakeFeed().feed);
  await arrive(gateway, alice);
  await arrive(other, alice);
  // Otherwise the second refresh may find some that the first has not read yet.
  const pending = () => database.client.dttSession.count({ where: { detailsPending: true } });
  await expect.poll(pending).toBe(0);
  for (let times = 0; times < 2; times++) expect((await read(other)).name).toBe('Program 1 of alice');
  const updatedAt = new Date(Date.now() + 1_000).toISOString();
  Object.assign(service.world.templates.get(1) ?? {}, { name: 'A new name', updatedAt });
  const fresh = { status: 200, name: 'A new name' };
  for (const each of [gateway, other])
    expect(await read(each, { 'Cache-Control': 'no-cache' })).toMatchObject(fresh);
});
