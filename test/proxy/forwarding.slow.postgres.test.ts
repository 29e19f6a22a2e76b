/** Which requests a gateway relays to the upstream, and what it does with the responses. */

import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createSignal } from '../../src/database/waiting.ts';
import {
  arrive,
  ask,
  type FrontedOptions,
  type FrontedService,
  openForEachTest,
  patch,
} from '../support/frontedService.ts';
import { type List, rest, type TestGateway } from '../support/gateway.ts';
import { type Fault, faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';

const openService = openForEachTest();
const open = (options: FrontedOptions = {}) =>
  openService({ ...options, settings: { UPSTREAM_INTERVAL: '600', ...options.settings } });

describe('a relayed request', () => {
  it.each([
    ['does not respond', faults.hang, 504, 'The upstream did not respond in time'],
    ['responds with an error page', faults.html, 502, undefined],
    ['responds with an error', faults.error500, 500, 'Internal server error'],
  ])('gets 504 or the response of the upstream if that %s', async (_, fault, status, error) => {
    const { gateway, service } = await open({ waits: { relay: 300 } });
    await arrive(gateway, alice);
    service.misbehave(fault, { path: /^\/unheard\/of$/ });
    const response = await fetch(`${gateway.url}/api/v1/unheard/of`, {
      headers: { Authorization: `Bearer ${alice}` },
    });
    expect(response.status).toBe(status);
    const text = await response.text();
    if (error !== undefined) expect(JSON.parse(text)).toMatchObject({ ok: false, error });
    else expect(response.headers.get('content-type')).toContain('text/html');
  });

  it.each(['/../../secret', '/..%2f..%2fsecret', '/%2e%2e/%2e%2e/secret', '/dtt/..;/..\\..\\secret'])(
    'is not sent to a path outside the base URL: %s',
    async (path) => {
      const { gateway, service } = await open();
      await arrive(gateway, alice);
      const status = await new Promise((settle, fail) => {
        request(
          `${gateway.url}/`,
          { path: `/api/v1${path}`, headers: { Authorization: `Bearer ${alice}` } },
          (response) => {
            response.resume();
            settle(response.statusCode);
          },
        )
          .on('error', fail)
          .end();
      });
      expect(status).toBe(404);
      expect(service.requests.some((each) => each.path.includes('secret'))).toBe(false);
    },
  );
});

describe('a request that is not relayed', () => {
  it('because it is too large gets 413 and has its connection closed', async () => {
    const { gateway } = await open();
    await arrive(gateway, alice);
    // The body is sent in chunks, without a Content-Length.
    const chunked = { body: new Blob(['x'.repeat(65 * 1024)]).stream(), duplex: 'half' as const };
    const response = await fetch(`${gateway.url}/api/v1/dtt/templates/1`, {
      method: 'PATCH',
      headers: { Authorization: `Bearer ${alice}`, 'Content-Type': 'application/json' },
      ...chunked,
    });
    expect([response.status, response.headers.get('connection')]).toEqual([413, 'close']);
    expect(await response.json()).toEqual({ ok: false, error: 'Request body too large' });
  });

  it('because of its method gets 405 with the methods that are allowed', async () => {
    const { gateway } = await open();
    await arrive(gateway, alice);
    const response = await fetch(`${gateway.url}/api/v1/unheard/of`, {
      method: 'OPTIONS',
      headers: { Authorization: `Bearer ${alice}` },
    });
    expect([response.status, response.headers.get('allow')]).toEqual([
      405,
      'GET, HEAD, POST, PUT, PATCH, DELETE',
    ]);
  });
});

describe('the response to a relayed request', () => {
  it('is neither cached nor shared with a concurrent request', async () => {
    const { gateway, service } = await open();
    await arrive(gateway, alice);
    const template = service.world.templates.get(1);
    if (!template) throw new Error('there is no template 1');
    service.world.templates.set(777, { ...template, id: 777, name: 'before' });
    service.account(1).ownTemplates.add(777);
    const path = '/dtt/templates/777';
    expect(
      (
        await fetch(`${gateway.url}/api/v1${path}`, {
          method: 'HEAD',
          headers: { Authorization: `Bearer ${alice}` },
        })
      ).status,
    ).toBe(200);
    expect(await rest(gateway, alice, path)).toMatchObject({
      status: 200,
      body: { data: { name: 'before' } },
    });
    Object.assign(service.world.templates.get(777) ?? {}, { name: 'after' });
    const [one, other] = await Promise.all([
      rest(gateway, alice, path),
      rest(gateway, 'second-of-alice', path),
    ]);
    for (const response of [one, other]) {
      expect(response.body).toMatchObject({ data: { name: 'after' } });
      // Only the upstream knows its age, and sends no Age.
      expect(response.headers.get('Age')).toBeNull();
    }
    service.account(1).ownTemplates.delete(777);
    expect((await rest(gateway, alice, path)).status).toBe(404);
    expect(service.count({ path })).toBe(5);
  });

  it('does not end the token if it is a 401 for one path alone', async () => {
    const { gateway, service } = await open();
    await arrive(gateway, alice);
    const rejection = { status: 401, body: { ok: false, error: 'This token may not do that' } };
    service.misbehave({ instead: () => rejection }, { path: /^\/admin/ });
    expect(await rest(gateway, alice, '/admin/x')).toMatchObject(rejection);
    for (let times = 0; times < 3; times++) {
      expect((await rest(gateway, alice, '/dtt')).status).toBe(200);
      expect((await ask(gateway, alice, '{ viewer { username } }')).status).toBe(200);
    }
  });
});

it('a relayed read is not followed by an older response once the write before it has been read back', async () => {
  const { gateway, service } = await open({ waits: { write: 300 } });
  await arrive(gateway, alice);
  const reached = createSignal();
  const end = createSignal();
  async function hold<Reply>(reply: Reply, { method }: { readonly method: string }): Promise<Reply> {
    if (method !== 'GET') return reply;
    reached.settle();
    await end.promise;
    return reply;
  }
  service.misbehave({ after: hold }, { path: /^\/dtt\/templates$/ });
  await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' });
  await reached.promise;
  // Another client changes it upstream after the list was read.
  const updatedAt = new Date(Date.now() + 1_000).toISOString();
  Object.assign(service.world.templates.get(2) ?? {}, { name: 'Newer', updatedAt });
  const read = async () => {
    const { status, body, headers } = await rest(gateway, alice, '/dtt/templates/2');
    return { status, data: body.data, isRelayed: headers.get('Age') === null };
  };
  const newer = { status: 200, data: expect.objectContaining({ name: 'Newer' }) };
  expect(await read()).toEqual({ ...newer, isRelayed: true });
  end.settle();
  let last = await read();
  for (const until = Date.now() + 10_000; last.isRelayed && Date.now() < until; last = await read())
    expect(last).toMatchObject(newer);
  expect(last).toEqual({ ...newer, isRelayed: false });
});

describe('a relayed write', () => {
  it.each([
    ['/dtt/templates/1', { name: 'A new name' }, ['/users/me', '/dtt/templates', '/dtt/templates/1']],
    ['/dtt/templates/999', { name: 'A new name' }, []],
  ])('has only the lists read again that it may have changed: %s', async (path, body, expected) => {
    const { gateway, service, database } = await open();
    await arrive(gateway, alice);
    // All details have to be read first, so that no request below is for them.
    await expect
      .poll(() => database.client.dttSession.count({ where: { detailsPending: true } }), { timeout: 20_000 })
      .toBe(0);
    await expect
      .poll(() => database.client.dttTemplate.count({ where: { detailsPending: true } }), { timeout: 20_000 })
      .toBe(0);
    service.forgetRequests();
    await patch(gateway, alice, path, body);
    const paths = service.requests
      .filter(({ method }) => method === 'GET')
      .map((each) => each.path.replace(/\?.*/, ''));
    // The run asks first whose the token is.
    expect(paths.slice(0, 2)).toEqual(expected.slice(0, 2));
    for (const each of paths) expect(expected).toContain(each);
  });

  it('that cannot be sent leaves the account readable', async () => {
    const { gateway, service } = await open();
    await arrive(gateway, alice);
    await service.stop();
    expect((await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' })).status).toBe(502);
    expect(await rest(gateway, alice, '/dtt/templates')).toMatchObject({ status: 200 });
  });
});

describe('a session that a client has written', () => {
  /** Makes the upstream accept writes to sessions, which change their names and a field that lists do not have. */
  function takeWrites(service: FrontedService['service']) {
    const { sessions } = service.account(1);
    const after: Fault['after'] = (reply, { method, path }) => {
      const id = Number(path.split('/').at(-1));
      const session = sessions.get(id);
      if (method === 'GET' || !session) return reply;
      if (method === 'DELETE') sessions.delete(id);
      else {
        const segments = session.TrainerSegment.map((segment) => ({ ...segment, repsMeasured: 4242 }));
        sessions.set(id, { ...session, name: 'A new name', TrainerSegment: segments });
      }
      return { status: 200, body: { ok: true, data: { id } } };
    };
    service.misbehave({ after }, { path: /^\/dtt\/sessions\/\d+$/ });
  }

  const manySessions = {
    accounts: [{ id: 1, username: 'alice', tokens: [alice], size: { sessions: 150 } }],
  };
  const list = async (gateway: TestGateway) => {
    const pages = [0, 100].map((offset) => rest(gateway, alice, `/dtt/sessions?limit=100&offset=${offset}`));
    // The REST interface defines this shape.
    return (await Promise.all(pages)).flatMap(({ body }) => (body.data as List<{ id: number }>).data);
  };

  it.each([0, 149])(
    'is read again before the response to the write, at index %i of the list',
    async (place) => {
      const { gateway, service } = await open({ standIn: manySessions });
      await arrive(gateway, alice);
      takeWrites(service);
      const id = (await list(gateway))[place]?.id;
      // This fetches its details.
      await rest(gateway, alice, `/dtt/sessions/${id}`);
      expect((await patch(gateway, alice, `/dtt/sessions/${id}`, { name: 'x' })).status).toBe(200);
      expect((await list(gateway))[place]).toMatchObject({ id, name: 'A new name' });
      service.forgetRequests();
      const { body } = await rest(gateway, alice, `/dtt/sessions/${id}`);
      expect(body.data).toMatchObject({
        name: 'A new name',
        TrainerSegment: expect.arrayContaining([expect.objectContaining({ repsMeasured: 4242 })]),
      });
      expect(service.count({ path: `/dtt/sessions/${id}` })).toBe(0);
    },
  );

  it.each([0, 149])(
    'is removed before the response to its deletion, at index %i of the list',
    async (place) => {
      const { gateway, service } = await open({ standIn: manySessions });
      await arrive(gateway, alice);
      takeWrites(service);
      const before = await list(gateway);
      const id = before[place]?.id;
      await rest(gateway, alice, `/dtt/sessions/${id}`, { method: 'DELETE' });
      expect(await list(gateway)).toEqual(before.filter((session) => session.id !== id));
    },
  );

  it('has its details fetched by the next read if it could not be read again after the write', async () => {
    const { gateway, service } = await open();
    const [session] = [...service.account(1).sessions.values()];
    if (!session) throw new Error('there is no session');
    const { id } = session;
    // With the same name as after the write, its list shows no change.
    session.name = 'A new name';
    await arrive(gateway, alice);
    takeWrites(service);
    await rest(gateway, alice, `/dtt/sessions/${id}`);
    let isBroken = true;
    const after: Fault['after'] = (reply, { method }) =>
      isBroken && method === 'GET' ? { status: 500, body: { ok: false, error: 'broken' } } : reply;
    service.misbehave({ after }, { path: /^\/dtt\/sessions\/\d+$/ });
    expect((await patch(gateway, alice, `/dtt/sessions/${id}`, { name: 'x' })).status).toBe(200);
    isBroken = false;
    const { body } = await rest(gateway, alice, `/dtt/sessions/${id}`);
    expect(body.data).toMatchObject({
      TrainerSegment: expect.arrayContaining([expect.objectContaining({ repsMeasured: 4242 })]),
    });
  });
});

it('a web page of a configured origin may send the methods of relayed requests, and read the age of a response', async () => {
  const origin = 'https://app.example.com';
  const { gateway } = await open({ settings: { CORS_ORIGINS: origin } });
  const preflight = await fetch(`${gateway.url}/api/v1/dtt/templates/1`, {
    method: 'OPTIONS',
    headers: { Origin: origin, 'Access-Control-Request-Method': 'PATCH' },
  });
  expect(preflight.headers.get('Access-Control-Allow-Methods')).toBe('GET,HEAD,POST,PUT,PATCH,DELETE');
  await arrive(gateway, alice);
  const response = await fetch(`${gateway.url}/api/v1/dtt`, {
    headers: { Origin: origin, Authorization: `Bearer ${alice}` },
  });
  expect(response.headers.get('Access-Control-Expose-Headers')).toContain('Age');
  expect(response.headers.get('Age')).toMatch(/^\d+$/);
});
