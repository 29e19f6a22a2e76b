/** Tokens that come to mean another account upstream while this gateway holds them for that which they stood for. */

import { expect, it } from 'vitest';
import {
  arrive,
  ask,
  type FrontedOptions,
  type FrontedService,
  openForEachTest,
  patch,
} from '../support/frontedService.ts';
import { rest } from '../support/gateway.ts';
import { type Fault, faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const second = 'second-of-alice';

const openService = openForEachTest();
const settings = { UPSTREAM_INTERVAL: '600' };

/** Alice uses two tokens, and has nothing in common with Bob. */
async function open(options: FrontedOptions = {}): Promise<FrontedService> {
  const fronted = await openService({ settings, ...options });
  for (const id of [1, 2]) fronted.service.account(id).imports.clear();
  await arrive(fronted.gateway, alice);
  await arrive(fronted.gateway, second);
  return fronted;
}

/** What Alice sees of what accounts have. */
const seenBy = async ({ gateway }: FrontedService, token = alice) =>
  (
    await ask(
      gateway,
      token,
      `{ viewer { username } activeDttTemplate { databaseId }
         dttSessions(first: 100) { nodes { databaseId name } } dttTemplates(first: 100) { nodes { databaseId name } }
         dttDevices { nodes { databaseId } } lockSessions { nodes { databaseId } } }`,
    )
  ).body;

const oneOf = (ids: Iterable<number>): number => {
  for (const id of ids) return id;
  throw new Error('there is none');
};

it('brings nothing of the other account in, and takes nothing away, when a client writes with such a token', async () => {
  const fronted = await open();
  const { gateway, service } = fronted;
  const before = await seenBy(fronted);
  service.addToken(second, 2);
  const own = oneOf(service.account(2).ownTemplates);
  expect((await patch(gateway, second, `/dtt/templates/${own}`, { name: 'secret' })).status).toBe(200);
  // What was written is read by her own token, as far as it is hers.
  expect(await seenBy(fronted)).toEqual(before);
  expect((await rest(gateway, second, '/dtt/templates')).status).toBe(401);
});

it.each(['/users/me', '/dtt', '/lkbx', '/ossm'])(
  'does the same when the token comes to mean another account in the middle of a run, after %s',
  async (path) => {
    const fronted = await open();
    const { gateway, service } = fronted;
    const before = await seenBy(fronted);
    let isOver = false;
    service.misbehave(
      {
        after(reply) {
          if (!isOver) service.addToken(second, 2);
          // No later run brings in order what this one has done.
          if (!isOver) service.misbehave(faults.error500, { account: 1 });
          isOver = true;
          return reply;
        },
      },
      { path: new RegExp(`^${path}$`) },
    );
    await ask(gateway, second, '{ viewer { id } }', { 'Cache-Control': 'no-cache' });
    expect(isOver).toBe(true);
    expect(await seenBy(fronted)).toEqual(before);
    expect((await rest(gateway, second, '/dtt/templates')).status).toBe(401);
  },
);

it('does not make the account one that is here and has nothing, when its first run reads another that has nothing', async () => {
  const nothing = {
    dttDevices: 0,
    templates: 0,
    imports: 0,
    sessions: 0,
    lkbxDevices: 0,
    lockTemplates: 0,
    lockSessions: 0,
    ossmDevices: 0,
  };
  const accounts = [
    { id: 1, username: 'alice', tokens: [alice, second] },
    { id: 2, username: 'bob', tokens: ['token-of-bob'], size: nothing },
  ];
  const fronted = await openService({ settings, standIn: { accounts } });
  const { gateway, service } = fronted;
  let times = 0;
  const after: Fault['after'] = (reply) => {
    // By the check of the token, and by the run.
    if (++times === 2) service.addToken(second, 2);
    return reply;
  };
  service.misbehave({ after }, { path: /^\/users\/me$/ });
  await ask(gateway, second, '{ viewer { id } }');
  expect(times).toBeGreaterThan(2);
  await arrive(gateway, alice);
  expect((await seenBy(fronted)).data.dttTemplates.nodes).not.toEqual([]);
});
