/** A gateway in front of a service whose clients send the service's tokens. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { subscribe } from '../../../support/events.ts';
import { rest, type TestGateway } from '../../../support/gateway.ts';
import { activate, arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const bob = 'token-of-bob';
const username = '{ viewer { username } }';

const open = openForEachTest();

it('UPSTREAM_TOKEN is asked about again after UPSTREAM_INTERVAL until the upstream says whose it is', async () => {
  const { service, database, openAnother } = await open();
  service.misbehave(faults.error500);
  await openAnother({ UPSTREAM_TOKEN: alice, UPSTREAM_INTERVAL: '10' });
  await expect.poll(() => service.count('/users/me')).toBeGreaterThan(0);
  service.behave();
  await expect.poll(() => database.client.mirroredAccount.count()).toBe(1);
});

describe('a token of the upstream', () => {
  it('is not sent upstream if it is malformed or a token of the gateway’s own', async () => {
    const { gateway, service, database } = await open();
    await arrive(gateway, alice);
    const { id, token } = await createToken(database.pool, 'alice', 'own');
    expect((await ask(gateway, token, username)).body).toMatchObject({
      data: { viewer: { username: 'alice' } },
    });
    await database.client.apiToken.update({ where: { id }, data: { revokedAt: new Date() } });
    await expect.poll(async () => (await ask(gateway, token, username)).status).toBe(401);
    for (const header of [`Bearer ${'x'.repeat(5_000)}`, 'Bearer a b', 'Basic YTpi'])
      expect((await fetch(`${gateway.url}/api/v1/dtt`, { headers: { Authorization: header } })).status).toBe(
        401,
      );
    expect([...service.tokensSeen]).toEqual([alice]);
  });

  it('is not forgotten while a stream is open with it, however rarely it is checked', async () => {
    const idle = 1_500;
    const { gateway, service } = await open({ idle, settings: { UPSTREAM_INTERVAL: '1' } });
    await arrive(gateway, alice);
    const events = await subscribe(gateway, alice, `subscription ${username}`);
    await events.next();
    const ended = events.rest().then(() => 'ended');
    expect(await Promise.race([ended, sleep(2 * idle, 'open')])).toBe('open');
    service.forgetRequests();
    await expect.poll(() => service.count('/dtt')).toBeGreaterThan(0);
    events.leave();
    await ended.catch(() => {});
  });

  it('is accepted while a proxy before the upstream responds with 403 to everything, and afterwards', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 200 });
    await arrive(gateway, alice);
    const headers = { 'Content-Type': 'text/html' };
    service.misbehave({ instead: () => ({ status: 403, body: '<h1>Attention required!</h1>', headers }) });
    await sleep(250);
    expect((await ask(gateway, alice, username)).status).toBe(200);
    expect((await rest(gateway, bob, '/users/me')).status).toBe(503);
    service.behave();
    expect((await ask(gateway, alice, username)).status).toBe(200);
  });

  it.each([
    ['an activation', (gateway: TestGateway) => activate(gateway, alice, 2)],
    ['a forwarded request', (gateway: TestGateway) => rest(gateway, alice, '/unheard/of')],
  ])(
    'ends with its streams once the upstream rejects %s with it, even if other requests use up the budget',
    async (_, use) => {
      const { gateway, service } = await open({ tokenMaxAge: 1_000, settings: { UPSTREAM_RATE: '30' } });
      await arrive(gateway, alice);
      const stream = await fetch(`${gateway.url}/graphql?query=subscription{viewer{username}}`, {
        headers: { Authorization: `Bearer ${alice}`, Accept: 'text/event-stream' },
      });
      service.revoke(alice);
      await use(gateway);
      // Requests with another token of the account use up the budget.
      await Promise.all(
        Array.from({ length: 30 }, (_, index) => rest(gateway, 'second-of-alice', `/unheard/${index}`)),
      );
      expect(await stream.text()).toContain('alice');
      expect((await ask(gateway, alice, username)).status).toBe(401);
    },
  );

  it('has its own rate limit, and counts for the client whom a trusted proxy names if it is invalid', async () => {
    const { gateway } = await open({ settings: { TRUST_PROXY: '1' } });
    const from = (address: string, token: string) =>
      rest(gateway, token, '/users/me', { headers: { 'X-Forwarded-For': address } });
    for (let count = 0; count < 20; count++) await from('198.51.100.1', `nobody-${count}`);
    expect((await from('198.51.100.1', alice)).status).toBe(429);
    const { status, headers } = await from('198.51.100.2', alice);
    expect([status, headers.get('RateLimit-Policy')]).toEqual([200, expect.stringMatching(/^"token"/)]);
  });

  it('is never logged or stored', async () => {
    const { gateway, service, database } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    await rest(gateway, alice, '/nowhere', { headers: { 'X-Request-Id': alice } });
    await rest(gateway, alice, `/${alice}`);
    const tables = await database.pool.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
    );
    const stored: unknown[] = [];
    for (const { name } of tables.rows)
      stored.push(...(await database.pool.query(`SELECT t::text AS row FROM "${name}" t`)).rows);
    expect(JSON.stringify(stored)).toContain('(1,alice,');
    expect(JSON.stringify(stored)).not.toContain(alice);
    await patch(gateway, alice, '/dtt/templates/1', { name: alice });
    service.misbehave(faults.error500);
    await rest(gateway, alice, '/nowhere');
    expect(gateway.log.length).toBeGreaterThan(5);
    expect(gateway.log.join('')).not.toContain(alice);
  });
});

describe('an account that has not been read yet', () => {
  it('is not read for a client of REST alone', async () => {
    const { gateway, service } = await open();
    for (const path of ['/dtt', '/dtt/sessions', '/lkbx']) await rest(gateway, alice, path);
    await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' });
    await rest(gateway, alice, '/dtt');
    // The token was checked, and each request forwarded.
    expect(service.count()).toBe(6);
  });
});
