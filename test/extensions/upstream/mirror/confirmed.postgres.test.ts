/** Tokens that the upstream moves to another account, while the gateway still takes them for those of the first. */

import { expect, it } from 'vitest';
import { rest } from '../../../support/gateway.ts';
import {
  arrive,
  ask,
  type FrontedOptions,
  type FrontedService,
  openForEachTest,
  patch,
} from '../support/frontedService.ts';
import { faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const second = 'second-of-alice';

const openService = openForEachTest();

/** Alice uses two tokens, and has nothing in common with Bob. */
async function open(options: FrontedOptions = {}): Promise<FrontedService> {
  const fronted = await openService(options);
  for (const id of [1, 2]) fronted.service.account(id).imports.clear();
  await arrive(fronted.gateway, alice);
  await arrive(fronted.gateway, second);
  return fronted;
}

/** What a client with a token of Alice's sees. */
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

it('a write with a token that was moved to another account adds nothing to the first account and removes nothing', async () => {
  const fronted = await open();
  const { gateway, service } = fronted;
  const before = await seenBy(fronted);
  service.addToken(second, 2);
  const [own] = service.account(2).ownTemplates;
  expect((await patch(gateway, second, `/dtt/templates/${own}`, { name: 'secret' })).status).toBe(200);
  // After the write, her account is read with the token that is still hers.
  expect(await seenBy(fronted)).toEqual(before);
  expect((await rest(gateway, second, '/dtt/templates')).status).toBe(401);
});

it.each(['/users/me', '/dtt', '/lkbx', '/ossm'])(
  'a run whose token is moved to another account after %s adds nothing to the first account and removes nothing',
  async (path) => {
    const fronted = await open();
    const { gateway, service } = fronted;
    const before = await seenBy(fronted);
    let isOver = false;
    service.misbehave(
      {
        after(reply) {
          if (!isOver) service.addToken(second, 2);
          // From now on the upstream fails for Alice, so that no later run can repair what this one does.
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
