/** Attacks on the cache of REST responses: whatever is stored of an account, no token of another account gets it. */

import { request } from 'node:http';
import { expect, it, vi } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { forgetAccount } from '../../../../src/extensions/upstream/cli/forget.ts';
import type { TestGateway } from '../../../support/gateway.ts';
import { arrive, type FrontedOptions, openForEachTest } from '../support/frontedService.ts';

const alice = 'token-of-alice';
const second = 'second-of-alice';
const bob = 'token-of-bob';

const openService = openForEachTest();

/** Opens a gateway whose upstream gives each response to `/echo`, however it is written, a number and the account. */
async function open(options: FrontedOptions = {}) {
  const fronted = await openService(options);
  const { service } = fronted;
  let number = 0;
  for (const account of [1, 2]) {
    const instead = () => ({ status: 200, body: `${account} ${number++}` });
    service.misbehave({ instead }, { account, path: /ch(o|%6f)/i });
  }
  return fronted;
}

const { now } = performance;

/** Has the clock show a time that is so many seconds ahead. */
const advance = (seconds: number) =>
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + seconds * 1_000);

/** Sends a target as it is written, which `fetch` would not. Returns the body, which begins with the account. */
const read = ({ url }: TestGateway, token: string, target: string, headers: Record<string, string> = {}) =>
  new Promise<string>((settle, fail) => {
    const options = { path: `/api/v1${target}`, headers: { Authorization: `Bearer ${token}`, ...headers } };
    request(url, options, async (response) => {
      let body = '';
      for await (const chunk of response) body += chunk;
      settle(response.statusCode === 200 ? body : `${response.statusCode}`);
    })
      .on('error', fail)
      .end();
  });

/** Reads a target until what is stored of it is sent: on a busy machine, announcements may not be heard in time for that. */
async function readStored(...request: Parameters<typeof read>): Promise<string> {
  let last = '';
  const isSentAgain = async () => {
    const before = last;
    last = await read(...request);
    return last === before;
  };
  await expect.poll(isSentAgain, { interval: 5 }).toBe(true);
  return last;
}

const targets = [
  ...['/echo', '/echo?', '/echo/', '/Echo', '//echo', '/%65cho', '/%65Cho', '/ech%6F', '/ech%6f', '/echo%2f'],
  ...['/echo%20', '/echo+', '/echo?a=1&b=2', '/echo?b=2&a=1', '/echo?a=1&a=2', '/echo?a=2&a=1'],
  ...['/echo?a=%31&b=2', '/echo?targetUserId=1', '/echo?targetUserId=2', '/echo?constructor', '/echo?%22%7D'],
];

it('each target of each account is a response of its own, however alike targets are written', async () => {
  const { gateway } = await open();
  const bodies: string[] = [];
  for (const target of targets)
    for (const [index, token] of [alice, bob].entries()) {
      const body = await readStored(gateway, token, target);
      expect(body, `${target} of ${token}`).toMatch(new RegExp(`^${index + 1} `));
      bodies.push(body);
    }
  expect(new Set(bodies).size).toBe(bodies.length);
});

it('what is stored is not sent to a token that was revoked, nor to one that is another account’s by now', async () => {
  const { gateway, service } = await open();
  const stored = await readStored(gateway, alice, '/echo');
  await read(gateway, second, '/echo');
  service.addToken(second, 2);
  service.revoke(alice);
  // A request waits for the check of its token, unless it takes longer than a second.
  advance(61);
  for (const token of [alice, second]) await expect.poll(() => read(gateway, token, '/echo')).toBe('401');
  service.addToken(alice, 1);
  // An invalid token is not checked again before.
  advance(72);
  expect(await read(gateway, second, '/echo')).toMatch(/^2 /);
  expect(await read(gateway, alice, '/echo')).toMatch(/^1 /);
  expect(stored).toMatch(/^1 /);
});

it('a token of the gateway’s own is not used by REST where clients have tokens of the upstream: those may be other accounts’ by now', async () => {
  const { gateway, service, database } = await open();
  await arrive(gateway, alice);
  const { token } = await createToken(database.pool, 'alice', 'own');
  service.addToken(alice, 2);
  expect(await read(gateway, alice, '/echo')).toMatch(/^2 /);
  expect(await read(gateway, token, '/echo')).toBe('503');
});

it('UPSTREAM_TOKEN that has become another account’s reads and writes nothing any more', async () => {
  const settings = { UPSTREAM_TOKEN: alice };
  const { gateway, service, database } = await open({ tokenMaxAge: 1_000, settings });
  await expect.poll(() => database.client.mirroredAccount.count()).toBe(1);
  const { token } = await createToken(database.pool, 'alice', 'own');
  expect(await read(gateway, token, '/echo')).toMatch(/^1 /);
  service.addToken(alice, 2);
  const readNew = () => read(gateway, token, '/echo', { 'Cache-Control': 'no-cache' });
  await expect.poll(readNew).toBe('502');
});

it('nothing is stored of an account that was forgotten', async () => {
  const { gateway, database, openAnother } = await open();
  const other = await openAnother();
  await arrive(gateway, alice);
  const before = [await readStored(gateway, alice, '/echo'), await readStored(other, alice, '/echo')];
  const ofBob = await readStored(gateway, bob, '/echo');
  await forgetAccount(database.pool, { id: 1 });
  const after = [await read(gateway, alice, '/echo'), await read(other, alice, '/echo')];
  for (const body of after) expect(before).not.toContain(body);
  await expect.poll(() => read(gateway, bob, '/echo')).toBe(ofBob);
});
