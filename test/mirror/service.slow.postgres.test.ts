/** A gateway in front of a service whose clients send the service's tokens. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import { subscribe } from '../support/events.ts';
import { arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { graphqlOnce, rest, type TestGateway } from '../support/gateway.ts';
import { faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const bob = 'token-of-bob';
const username = '{ viewer { username } }';

const open = openForEachTest();

describe('a token of the upstream', () => {
  it('gives access to its own account alone, over both APIs', async () => {
    const { gateway, service } = await open();
    for (const [token, name] of [
      [alice, 'alice'],
      [bob, 'bob'],
    ] as const) {
      const { body } = await ask(
        gateway,
        token,
        '{ viewer { username } dttSessions { nodes { bubbleId } } }',
      );
      expect(body.data.viewer.username).toBe(name);
      expect(body.data.dttSessions.nodes).toHaveLength(12);
      for (const session of body.data.dttSessions.nodes) expect(session.bubbleId).toContain(name);
      expect((await rest(gateway, token, '/users/me')).body).toMatchObject({ data: { username: name } });
    }
    expect([...service.tokensSeen].sort()).toEqual([alice, bob]);
  });

  it('is rejected with 401 if it is unknown upstream, which is asked once for several requests', async () => {
    const { gateway, service } = await open();
    for (const path of ['/dtt', '/users/me', '/dtt'])
      expect(await rest(gateway, 'nobody', path)).toMatchObject({
        status: 401,
        body: { ok: false, error: 'Unauthorized' },
      });
    expect((await graphqlOnce(gateway, 'nobody', username)).status).toBe(401);
    expect(service.count({ status: 401 })).toBe(1);
  });

  it('is checked once for concurrent requests', async () => {
    const { gateway, service } = await open();
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => rest(gateway, alice, '/nowhere/to/be/found')),
    );
    for (const { status } of responses) expect(status).toBe(404);
    expect(service.count({ path: '/users/me' })).toBe(1);
  });

  it('whose check hangs causes no refresh after the gateway has closed', async () => {
    const timing = { timeout: 700, retries: 0 };
    const { gateway, service } = await open({ timing, tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    service.misbehave(faults.hang, { path: /^\/users\/me$/ });
    await sleep(1_100);
    const checksBefore = service.count({ path: '/users/me' });
    // The connection may be closed before the response.
    const over = Promise.allSettled([rest(gateway, alice, '/users/me')]);
    await expect.poll(() => service.count({ path: '/users/me' })).toBe(checksBefore + 1);
    await gateway.close();
    await over;
    const linesBefore = gateway.log.length;
    await sleep(1_000);
    expect(JSON.stringify(gateway.log.slice(linesBefore))).not.toContain('mirror not refreshed');
  });

  it('is rejected with 429 without a check after twenty invalid tokens from its address', async () => {
    const { gateway, service } = await open();
    for (let index = 0; index < 20; index++)
      expect((await rest(gateway, `nobody-${index}`, '/dtt')).status).toBe(401);
    const rejected = await rest(gateway, 'nobody-any-more', '/dtt');
    expect(rejected).toMatchObject({ status: 429, body: { error: 'Too many requests' } });
    expect(Number(rejected.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(service.count()).toBe(20);
  });

  it('is not sent upstream if it is malformed or a token of the gateway’s own', async () => {
    const { gateway, service, database } = await open();
    await arrive(gateway, alice);
    const { id, token } = await createToken(database.pool, 'alice', 'own');
    expect((await ask(gateway, token, username)).body).toMatchObject({
      data: { viewer: { username: 'alice' } },
    });
    await database.client.apiToken.update({ where: { id }, data: { revokedAt: new Date() } });
    await expect
      .poll(async () => (await ask(gateway, token, username)).status, { timeout: 20_000 })
      .toBe(401);
    for (const header of [`Bearer ${'x'.repeat(5_000)}`, 'Bearer a b', 'Basic YTpi'])
      expect((await fetch(`${gateway.url}/api/v1/dtt`, { headers: { Authorization: header } })).status).toBe(
        401,
      );
    expect([...service.tokensSeen]).toEqual([alice]);
  });

  it('ends with its streams once the upstream rejects it, while another token of the account stays valid', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    const stream = await fetch(`${gateway.url}/graphql?query=subscription{viewer{username}}`, {
      headers: { Authorization: `Bearer ${alice}`, Accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    service.revoke(alice);
    await expect.poll(async () => (await ask(gateway, alice, username)).status).toBe(401);
    expect(await stream.text()).toContain('alice');
    expect((await ask(gateway, 'second-of-alice', username)).status).toBe(200);
  });

  it('is accepted while the upstream is unavailable if it was valid before, and gets 503 if it is new', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    await service.stop();
    await new Promise((settle) => setTimeout(settle, 1_100));
    const known = await ask(gateway, alice, username);
    expect(known).toMatchObject({ status: 200, body: { data: { viewer: { username: 'alice' } } } });
    const unknown = await rest(gateway, bob, '/users/me');
    expect(unknown).toMatchObject({ status: 503, body: { error: 'The upstream cannot be reached' } });
    expect(unknown.headers.get('Retry-After')).toBe('5');
    await service.start();
    await arrive(gateway, bob);
  });

  it('ends when the upstream moves it to another account', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    service.addToken(alice, 2);
    await expect.poll(async () => (await ask(gateway, alice, username)).status).toBe(401);
    expect(gateway.log.join('')).toContain('the upstream says that a token belongs to another user');
    expect(gateway.log.join('')).not.toContain(alice);
  });

  it('is checked again after it was unused for a while, since it was forgotten', async () => {
    // Longer than a request takes on a busy machine, or the token would be forgotten during the request.
    const { gateway, service } = await open({ idle: 800 });
    await arrive(gateway, alice);
    await new Promise((settle) => setTimeout(settle, 1_300));
    const before = service.count({ path: '/users/me' });
    await arrive(gateway, alice);
    expect(service.count({ path: '/users/me' })).toBeGreaterThan(before);
  });

  it('is not forgotten while a stream is open with it, however rarely it is checked', async () => {
    const idle = 1_500;
    const { gateway } = await open({ idle });
    await arrive(gateway, alice);
    const events = await subscribe(gateway, alice, `subscription ${username}`);
    await events.next();
    const ended = events.rest().then(() => 'ended');
    expect(await Promise.race([ended, sleep(3 * idle, 'open')])).toBe('open');
    events.leave();
    await ended.catch(() => {});
  });

  it('gets 503 while the upstream does not say whose it is, even if it can read records of another account', async () => {
    const { gateway, service } = await open({
      standIn: {
        accounts: [
          {
            id: 1,
            username: 'alice',
            tokens: [alice],
            linked: [2],
            size: { dttDevices: 0, templates: 0, imports: 2 },
          },
          { id: 2, username: 'bob', tokens: [bob], linked: [1] },
        ],
      },
    });
    await arrive(gateway, bob);
    service.misbehave(faults.missing, { path: /^\/users\/me$/ });
    for (const response of [
      await ask(gateway, alice, username),
      await rest(gateway, alice, '/dtt/sessions'),
    ]) {
      expect(response.status).toBe(503);
      expect(JSON.stringify(response.body)).not.toContain('bob');
    }
    service.behave();
    await expect
      .poll(async () => (await ask(gateway, alice, username)).body.data?.viewer.username, { timeout: 5_000 })
      .toBe('alice');
  });

  it('is accepted while a proxy before the upstream responds with 403 to everything, and afterwards', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    const page = {
      status: 403,
      body: '<h1>Attention required!</h1>',
      headers: { 'Content-Type': 'text/html' },
    };
    service.misbehave({ instead: () => page });
    await new Promise((settle) => setTimeout(settle, 1_000));
    expect((await ask(gateway, alice, username)).status).toBe(200);
    expect((await rest(gateway, bob, '/users/me')).status).toBe(503);
    service.behave();
    expect((await ask(gateway, alice, username)).status).toBe(200);
  });

  it.each([
    [
      'an activation',
      (gateway: TestGateway) =>
        ask(
          gateway,
          alice,
          'mutation { activateTemplate(template: { databaseId: 2 }) { template { name } } }',
        ),
    ],
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

  it.each([
    ['username', null],
    ['username', 'x'.repeat(300)],
    ['rank', 1.5],
    ['league', 'gold'],
    ['profileImage', {}],
  ])('is accepted even if a field of its user is not valid: %s %j', async (field, value) => {
    const { gateway, service } = await open();
    service.account(1).user[field] = value;
    expect(await rest(gateway, alice, '/dtt/templates?limit=2')).toMatchObject({ status: 200 });
  });

  it('is never logged', async () => {
    const { gateway, service } = await open({ tokenMaxAge: 1_000 });
    await arrive(gateway, alice);
    await rest(gateway, alice, '/nowhere', { headers: { 'X-Request-Id': alice } });
    await rest(gateway, alice, `/${alice}`);
    await patch(gateway, alice, '/dtt/templates/1', { name: alice });
    service.misbehave(faults.error500);
    await rest(gateway, alice, '/nowhere');
    expect(gateway.log.length).toBeGreaterThan(5);
    expect(gateway.log.join('')).not.toContain(alice);
  });
});

describe('an account that has not been read yet', () => {
  it('has GraphQL requests rejected with 503 and its progress', async () => {
    const { gateway, service } = await open({ waits: { arrival: 200 } });
    // All lists are sent but the last one, which hangs.
    service.misbehave(faults.hang, { path: /^\/dtt\/sessions$/ });
    const arriving = await ask(gateway, alice, username);
    expect(arriving).toMatchObject({
      status: 503,
      body: { errors: [{ extensions: { code: 'SERVICE_UNAVAILABLE' } }] },
    });
    expect(arriving.body.errors[0].message).toMatch(
      /^The account is being read from the upstream: \d+ records so far$/,
    );
    expect(arriving.headers.get('Retry-After')).toBe('5');
    service.behave();
    await arrive(gateway, alice);
  });

  it('is not read for a client of REST alone', async () => {
    const { gateway, service } = await open();
    for (const path of ['/dtt', '/dtt/sessions', '/lkbx']) await rest(gateway, alice, path);
    await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' });
    await rest(gateway, alice, '/dtt');
    // The token was checked, and each request forwarded.
    expect(service.count()).toBe(6);
  });

  it('is read by one of two gateways that get a request for it at the same time', async () => {
    const { gateway, service, openAnother } = await open();
    const another = await openAnother();
    const responses = await Promise.all([ask(gateway, alice, username), ask(another, alice, username)]);
    for (const { status } of responses) expect(status).toBe(200);
    expect(service.count({ path: '/ossm' })).toBe(1);
  });
});

describe('an account that has been read', () => {
  it('is served with its age, and read again for a request that demands fresh data', async () => {
    const { gateway, service } = await open({ settings: { UPSTREAM_INTERVAL: '600' } });
    await arrive(gateway, alice);
    const title = async (headers: Record<string, string> = {}) => {
      const { body, headers: responded } = await ask(gateway, alice, '{ viewer { profileTitle } }', headers);
      return [body.data.viewer.profileTitle, Number(responded.get('Age')) < 600];
    };
    const [before] = await title();
    Object.assign(service.account(1).user, { profileTitle: 'Changed' });
    expect(await title()).toEqual([before, true]);
    expect(await title({ 'Cache-Control': 'max-age=500' })).toEqual([before, true]);
    expect(await title({ 'Cache-Control': 'no-cache' })).toEqual(['Changed', true]);
    Object.assign(service.account(1).user, { profileTitle: 'Again' });
    expect(await title({ 'Cache-Control': 'max-age=0' })).toEqual(['Again', true]);
  });

  it('is refreshed at the interval while there are requests for it', async () => {
    const { gateway, service } = await open({ settings: { UPSTREAM_INTERVAL: '1' }, idle: 100_000 });
    await arrive(gateway, alice);
    Object.assign(service.account(1).user, { profileTitle: 'Changed' });
    await expect
      .poll(
        async () => (await ask(gateway, alice, '{ viewer { profileTitle } }')).body.data.viewer.profileTitle,
        {
          timeout: 10_000,
        },
      )
      .toBe('Changed');
  });

  it('shows a write by REST to the next request of the client by GraphQL', async () => {
    const { gateway } = await open({ settings: { UPSTREAM_INTERVAL: '600' } });
    await arrive(gateway, alice);
    for (let round = 1; round <= 5; round++) {
      const written = await patch(gateway, alice, '/dtt/templates/1', { name: `Round ${round}` });
      expect(written.status).toBe(200);
      const { body } = await ask(gateway, alice, '{ dttTemplate(databaseId: 1) { name segments { type } } }');
      expect(body.data.dttTemplate).toMatchObject({ name: `Round ${round}`, segments: { length: 3 } });
    }
  });
});
