/** A template that the service no longer shows to an account, while that account cannot be refreshed. */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { subscribe } from '../../../support/events.ts';
import { arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { failure } from '../support/standIn/reads.ts';

const [alice, bob] = ['token-of-alice', 'token-of-bob'];
const open = openForEachTest();

it('what its owner then writes is not shown to that account, nor in its open streams, unless the service shows it', async () => {
  const { gateway, service } = await open();
  const { imports } = service.account(1);
  const [id = 0] = imports;
  Object.assign(service.world.templates.get(id) ?? {}, { name: 'Shared', isPublic: true });
  await arrive(gateway, alice);
  await arrive(gateway, bob);
  const query = `{ dttTemplates(where: { databaseId: { eq: ${id} } }) { nodes { name segments { type } } } }`;
  const shown = (data: { dttTemplates: { nodes: { name: string }[] } }) =>
    data.dttTemplates.nodes.map(({ name }) => name);
  const read = async (token: string, headers: Record<string, string> = {}) => {
    const { body, headers: said } = await ask(gateway, token, query, headers);
    return { age: Number(said.get('Age')), names: shown(body.data) };
  };
  const stream = await subscribe(gateway, alice, `subscription ${query}`);
  expect(shown(await stream.next())).toEqual(['Shared']);

  imports.delete(id);
  const busy = { ...failure(429, 'Rate limit exceeded'), headers: { 'Retry-After': '3600' } };
  service.misbehave({ instead: () => busy }, { account: 1 });
  await sleep(1_000);
  const written = { name: 'For myself', isPublic: false };
  expect((await patch(gateway, bob, `/dtt/templates/${id}`, written)).status).toBe(200);
  expect((await read(bob)).names).toEqual(['For myself']);
  // Its age is that of what the service has told this account.
  expect(await read(alice)).toEqual({ age: expect.toSatisfy((age) => age >= 1), names: [] });
  expect(shown(await stream.next())).toEqual([]);

  service.behave();
  expect((await read(alice, { 'Cache-Control': 'no-cache' })).names).toEqual([]);
  imports.add(id);
  expect((await read(alice, { 'Cache-Control': 'no-cache' })).names).toEqual(['For myself']);
  expect(shown(await stream.next())).toEqual(['For myself']);
  stream.leave();
});
