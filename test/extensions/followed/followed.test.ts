/** Every route is followed by an event stream, and waited for (docs/rest.md#polling-and-live-changes). */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { readWait } from '../../../src/extensions/followed/follow.ts';
import { routes } from '../../../src/rest/routes.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { openStream, subscribe } from '../../support/events.ts';
import { graphqlOnce, postJson } from '../../support/gateway.ts';
import { seeded } from '../../support/random.ts';
import { openRaw } from '../../support/rawHttp.ts';
import { pathsFor } from '../../support/restResponses.ts';
import { gatewayBeside, gatewayWith, holdTransaction } from '../../support/setUp.ts';
import { noteStatements } from '../../support/statements.ts';

const { gateway, database, bob } = await gatewayWith(['bob']);
const { pool } = database;
let names = 0;
const newAccount = () => createAccount(database.client, `alice-${names++}`);

const open: { leave(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.leave();
});

/** The entity tag, which is empty for an error, and the envelope as it was sent; undefined for a heartbeat. */
function eventOf(block: string) {
  const [, id, data] = /^id: (.*)\ndata: (.*)$/.exec(block) ?? [];
  if (id !== undefined && data !== undefined) return { id, data };
  return block === ':' ? undefined : expect.fail(`this is no event: ${block}`);
}

async function follow(token: string, path: string, headers: Record<string, string> = {}, at = gateway) {
  const own = { Accept: 'text/event-stream', Authorization: `Bearer ${token}` };
  const followed = await openStream(`${at.url}/api/v1${path}`, { headers: { ...own, ...headers } }, eventOf);
  open.push(followed);
  return followed;
}

const get = async (token: string, path: string, headers: Record<string, string> = {}, at = gateway) => {
  const response = await fetch(`${at.url}/api/v1${path}`, {
    // Compressed forms have other tags.
    headers: { Authorization: `Bearer ${token}`, 'Accept-Encoding': 'identity', ...headers },
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
};

/** The current event of a route, by a plain request. */
const currentOf = async (token: string, path: string, at = gateway) => {
  const { headers, body } = await get(token, path, {}, at);
  return { id: headers.get('ETag') ?? '', data: body };
};

/** What the routes of each prefix show, and how to change it. The first that fits a path is meant. */
const shown: readonly (readonly [prefix: RegExp, table: string, column: string])[] = [
  [/^\/users/, 'User', 'profileTitle'],
  [/^\/dtt\/(templates|settings)/, 'DttTemplate', 'name'],
  [/^\/dtt\/sessions/, 'DttSession', 'name'],
  [/^\/dtt/, 'DttDevice', 'serialNumber'],
  [/^\/lkbx\/templates/, 'LockTemplate', 'name'],
  [/^\/lkbx\/session/, 'LockSession', 'lockState'],
  [/^\/lkbx/, 'LkbxDevice', 'bubbleId'],
  [/^\/ossm/, 'OssmDevice', 'chip'],
];

/** Changes all records that a path shows. */
async function change(account: Account, path: string, text: string): Promise<void> {
  const [, table, column] = shown.find(([prefix]) => prefix.test(path)) ?? expect.fail(path);
  const owner = table === 'User' ? 'id' : '"ownerId"';
  const value = column === 'bubbleId' ? "$1 || '-' || id" : '$1';
  await pool.query(`UPDATE "${table}" SET "${column}" = ${value} WHERE ${owner} = $2`, [
    text,
    account.userId,
  ]);
}

const statements = noteStatements();

const readRoutes = routes.filter(({ method }) => method === 'GET').map(({ path }) => path);

describe.each(readRoutes)('GET %s', (template) => {
  it('sends the response now and after each change, and nothing while it is the same', async () => {
    const alice = await newAccount();
    const { userId, token } = alice;
    if (template === '/dtt/templates/active')
      await pool.query('UPDATE "User" SET "activeTemplateId" = $1 WHERE id = $2', [
        alice.dttTemplates[0],
        userId,
      ]);
    const [path = ''] = pathsFor(template, alice);
    const events = await follow(token, path, { 'Accept-Encoding': 'gzip' });
    expect(events.response.status).toBe(200);
    expect(Object.fromEntries(events.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      vary: expect.stringContaining('Accept'),
    });
    // gzip would hold events back.
    expect(events.response.headers.get('Content-Encoding')).toBeNull();
    const first = await events.next();
    expect(first).toEqual(await currentOf(token, path));
    const waiting = get(token, path, { 'If-None-Match': first.id, Prefer: 'wait=400' });

    // Neither a change that the route does not show, nor one of another user, is an event.
    if (!template.startsWith('/users'))
      await pool.query('UPDATE "User" SET "dttTotalReps" = 1, rank = 77 WHERE id = $1', [userId]);
    await change(bob, path, `of-bob-${template}`);
    await change(alice, path, 'changed');
    const second = await events.next();
    expect(second.data).toContain('changed');
    expect(second).toEqual(await currentOf(token, path));
    const waited = await waiting;
    expect([waited.status, waited.headers.get('Preference-Applied')]).toEqual([200, 'wait=50']);
    expect({ id: waited.headers.get('ETag'), data: waited.body }).toEqual(second);

    // A client that comes back gets nothing twice, and what it has missed.
    events.leave();
    const again = await follow(token, path, { 'Last-Event-ID': second.id });
    await change(alice, path, 'changed again');
    expect(await again.next()).toEqual(await currentOf(token, path));
    expect(await (await follow(token, path, { 'Last-Event-ID': second.id })).next()).toEqual(
      await currentOf(token, path),
    );
  });
});

describe('a followed route', () => {
  const path = '/dtt/templates/active';

  it('is the envelope of the 404 once its record is gone, that of a 500 while it cannot be read, and the record again once it is back', async () => {
    const alice = await newAccount();
    const [id] = alice.ossmDevices;
    const events = await follow(alice.token, `/ossm/${id}`);
    const before = await events.next();
    const waiting = get(alice.token, `/ossm/${id}`, { 'If-None-Match': before.id, Prefer: 'wait=40' });
    await sleep(300);
    const hide = (userId: number) =>
      pool.query('UPDATE "OssmDevice" SET "ownerId" = $1 WHERE id = $2', [userId, id]);
    await hide(bob.userId);
    // An empty id: a client that comes back gets the record, even if it is the one that it had before.
    const gone = { id: '', data: '{"ok":false,"error":"OSSM device not found"}' };
    expect(await events.next()).toEqual(gone);
    const { status, headers, body } = await waiting;
    expect([status, body, headers.get('Preference-Applied')]).toEqual([404, gone.data, null]);
    const late = await follow(alice.token, `/ossm/${id}`, { 'Last-Event-ID': before.id });
    expect([
      late.response.status,
      late.response.headers.get('Content-Type'),
      await late.response.text(),
    ]).toEqual([404, 'application/json; charset=utf-8', gone.data]);
    await hide(alice.userId);
    expect(await events.next()).toEqual(before);
    await pool.query('UPDATE "OssmDevice" SET chip = \'y\'; ALTER TABLE "OssmDevice" RENAME TO "Away"');
    expect(await events.next()).toEqual({ id: '', data: '{"ok":false,"error":"Internal server error"}' });
    await pool.query('ALTER TABLE "Away" RENAME TO "OssmDevice"');
    expect((await events.next()).data).toContain('"chip":"y"');
  });

  it('ends with the envelope of the 401 when its token is revoked or expires, and goes on when it is narrowed', async () => {
    const alice = await newAccount();
    const tag = (await currentOf(alice.token, path)).id;
    const unauthorized = { id: '', data: '{"ok":false,"error":"Unauthorized"}' };
    const ends: readonly (readonly [name: string, end: (id: number) => Promise<unknown>])[] = [
      ['revoked', (id) => revokeToken(database.pool, id)],
      [
        'expired',
        (id) =>
          pool.query(
            `UPDATE "ApiToken" SET "createdAt" = now() - interval '1 day', "expiresAt" = now() + interval '300 ms' WHERE id = $1`,
            [id],
          ),
      ],
    ];
    for (const [name, end] of ends) {
      const { id, token } = await createToken(pool, alice.username, name);
      const events = await follow(token, path);
      await events.next();
      const waiting = get(token, path, { 'If-None-Match': tag, Prefer: 'wait=40' });
      await sleep(300);
      await end(id);
      expect(await events.rest(), name).toEqual([unauthorized]);
      expect((await waiting).headers.get('WWW-Authenticate'), name).toMatch(/^Bearer error="invalid_token"/);
      expect((await waiting).body, name).toBe(unauthorized.data);
      expect((await follow(token, path)).response.status, name).toBe(401);
    }
    const narrowed = await createToken(pool, alice.username, 'narrowed');
    const events = await follow(narrowed.token, path);
    await events.next();
    await pool.query(`UPDATE "ApiToken" SET scope = 'read' WHERE id = $1`, [narrowed.id]);
    await postJson(gateway, alice.token, `/dtt/templates/${alice.dttTemplates[0]}`, { isActive: true });
    expect(await events.next()).toEqual(await currentOf(narrowed.token, path));
  });

  it('counts in the same quota as subscriptions, as long as it is followed', async () => {
    const alice = await newAccount();
    const at = await gatewayBeside(database, { settings: { MAX_SUBSCRIPTIONS: '2' } });
    const [first] = [await follow(alice.token, path, {}, at), await follow(alice.token, '/dtt', {}, at)];
    const tooMany = { ok: false, error: 'There are 2 subscriptions open; at most 2 are allowed' };
    const rejected = await follow(alice.token, path, {}, at);
    expect([rejected.response.status, rejected.response.headers.get('Retry-After')]).toEqual([429, '1']);
    expect(await rejected.response.json()).toEqual(tooMany);
    const { id } = await currentOf(alice.token, path, at);
    const wait = (seconds: string) =>
      get(alice.token, path, { 'If-None-Match': id, Prefer: `wait=${seconds}` }, at);
    const waited = await wait('1');
    expect([waited.status, waited.headers.get('Preference-Applied')]).toEqual([429, null]);
    const { response } = await subscribe(at, alice.token, 'subscription { viewer { username } }');
    expect([response.status, response.headers.get('Retry-After')]).toEqual([429, '1']);
    first.leave();
    await expect.poll(async () => (await wait('0')).status).toBe(304);
    // A request that waits counts as well, and one whose client has left does not.
    const leaving = new AbortController();
    const left = fetch(`${at.url}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${alice.token}`, 'If-None-Match': id, Prefer: 'wait=40' },
      signal: leaving.signal,
    }).catch(() => 'left');
    await expect.poll(async () => (await wait('0')).status).toBe(429);
    leaving.abort();
    expect(await left).toBe('left');
    await expect.poll(async () => (await wait('0')).status).toBe(304);
  });

  it('breaks off when the gateway closes, so that clients come back, and a request stops waiting', async () => {
    const alice = await newAccount();
    const closing = new AbortController();
    const at = await gatewayBeside(database, { closing: closing.signal });
    const events = await follow(alice.token, path, {}, at);
    const { id } = await events.next();
    const waiting = get(alice.token, path, { 'If-None-Match': id, Prefer: 'wait=40' }, at);
    await sleep(300);
    closing.abort();
    await expect(events.rest()).rejects.toThrow('terminated');
    const { status, headers } = await waiting;
    expect([status, headers.get('ETag'), headers.get('Connection')]).toEqual([304, id, 'close']);
  });

  it('is JSON for HEAD, for what the route rejects, and for clients that name no event stream, or prefer JSON', async () => {
    const alice = await newAccount();
    const ask = async (method: string, accept: string) => {
      const leaving = new AbortController();
      const { headers } = await fetch(`${gateway.url}/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${alice.token}`, Accept: accept },
        signal: leaving.signal,
      });
      leaving.abort();
      expect(headers.get('Vary')).toBe('Authorization, Accept, Accept-Encoding');
      return headers.get('Content-Type')?.split(';')[0];
    };
    for (const accept of ['*/*', 'application/json, text/event-stream', 'text/event-stream;q=0.5, */*'])
      expect(await ask('GET', accept), accept).toBe('application/json');
    expect(await ask('HEAD', 'text/event-stream')).toBe('application/json');
    expect((await follow(alice.token, '/dtt?limit=0')).response.status).toBe(400);
    for (const Accept of ['Text/Event-Stream', 'text/event-stream, */*;q=0.1']) {
      const { response } = await follow(alice.token, path, { Accept });
      expect(response.headers.get('Content-Type'), Accept).toBe('text/event-stream; charset=utf-8');
    }
  });
});

describe('a request that waits', () => {
  const path = '/users/me';

  it('gets the 304 after the time that it names, and no statement runs meanwhile', async () => {
    const alice = await newAccount();
    const { id } = await currentOf(alice.token, path);
    const began = performance.now();
    const waiting = get(alice.token, path, { 'If-None-Match': id, Prefer: 'wait=2' });
    await sleep(500);
    statements.length = 0;
    const { status, headers, body } = await waiting;
    const took = performance.now() - began;
    expect([status, body, headers.get('Preference-Applied')]).toEqual([304, '', 'wait=2']);
    expect(took).toBeGreaterThan(1_900);
    expect(took).toBeLessThan(10_000);
    expect(statements.filter((text) => !/^(SELECT 1|NOTIFY .*)$/.test(text))).toEqual([]);
  });

  it.each([
    ['without If-None-Match', {}, 200],
    ['with the tag of another response', { 'If-None-Match': '"other"' }, 200],
  ] as const)('is answered at once %s, and to HEAD in any case', async (_, condition, status) => {
    const alice = await newAccount();
    const began = performance.now();
    expect((await get(alice.token, path, { Prefer: 'wait=40', ...condition })).status).toBe(status);
    const headers = { Authorization: `Bearer ${alice.token}`, 'If-None-Match': '*', Prefer: 'wait=40' };
    expect((await fetch(`${gateway.url}/api/v1${path}`, { method: 'HEAD', headers })).status).toBe(304);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it('is not counted when its client has left before the wait begins', async () => {
    const alice = await newAccount();
    const at = await gatewayBeside(database, { settings: { MAX_SUBSCRIPTIONS: '1' } });
    // The token is known from now on.
    await get(alice.token, path, {}, at);
    const release = await holdTransaction(pool, 'LOCK TABLE "DttDevice"');
    const { socket } = await openRaw(at.url);
    socket.write(
      `GET /api/v1/dtt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.token}\r\nIf-None-Match: *\r\nPrefer: wait=40\r\n\r\n`,
    );
    await sleep(200);
    socket.destroy();
    await sleep(100);
    await release();
    expect((await get(alice.token, '/dtt', {}, at)).status).toBe(200);
    await sleep(200);
    const again = await get(alice.token, '/dtt', { 'If-None-Match': '*', Prefer: 'wait=0' }, at);
    expect(again.status).toBe(304);
  });

  it('waits for the form of the response that the client accepts, and for each of several tags', async () => {
    const alice = await newAccount();
    const zipped = { 'Accept-Encoding': 'gzip' };
    const list = '/dtt/sessions';
    const { headers } = await get(alice.token, list, zipped);
    expect(headers.get('ETag')).toMatch(/-gz"$/);
    const condition = { 'If-None-Match': `"other", W/${headers.get('ETag')}` };
    const same = await get(alice.token, list, { ...zipped, ...condition, Prefer: 'respond-async, WAIT="1"' });
    expect([same.status, same.headers.get('Preference-Applied')]).toEqual([304, 'wait=1']);
    const uncompressed = await gatewayBeside(database, { settings: { COMPRESSION: 'off' } });
    const { id } = await currentOf(alice.token, list, uncompressed);
    const waiting = [
      get(alice.token, list, { ...zipped, ...condition, Prefer: 'wait=40' }),
      get(alice.token, list, { ...zipped, 'If-None-Match': id, Prefer: 'wait=40' }, uncompressed),
    ];
    await sleep(300);
    await change(alice, list, 'changed');
    for (const { body } of await Promise.all(waiting)) expect(body).toContain('changed');
  });
});

it('after any writes, the last event of each stream is the response to a fresh request, and none shows another user', async () => {
  const seed = Date.now() % 100_000;
  const next = seeded(seed);
  const random = (below: number) => Math.floor(next() * below);
  const beside = await gatewayBeside(database);
  const accounts = [await newAccount(), await newAccount()];
  const followed = await Promise.all(
    accounts.flatMap((account) =>
      readRoutes.map(async (template, index) => {
        const [path = ''] = pathsFor(template, account);
        const at = index % 2 === 0 ? gateway : beside;
        const events = await follow(account.token, path, {}, at);
        const seen = { account, path, at, last: await events.next(), count: 1 };
        void (async () => {
          for (;;) {
            seen.last = await events.next();
            seen.count++;
            const others = accounts.filter((each) => each !== account);
            for (const { username } of others)
              if (seen.last.data.includes(username))
                throw new Error(`${path} shows ${username}: ${seen.last.data}`);
          }
        })().catch((error) => {
          if (!/aborted/.test(String(error))) Object.assign(seen, { error });
        });
        return seen;
      }),
    ),
  );
  for (let round = 0; round < 4; round++) {
    const writing: Promise<unknown>[] = [];
    for (let write = random(12); write >= 0; write--) {
      const account = accounts[random(2)] ?? expect.fail();
      const path = readRoutes[random(readRoutes.length)] ?? expect.fail();
      const [template] = [account.dttTemplates[random(3)]];
      const writes = [
        () => change(account, path, `${account.username} ${random(4)}`),
        () => postJson(gateway, account.token, `/dtt/templates/${template}`, { isActive: true }),
        () => postJson(beside, account.token, `/dtt/templates/${template}`, { isActive: true }),
        () =>
          graphqlOnce(
            beside,
            account.token,
            `mutation { activateTemplate(template: { databaseId: ${template} }) { template { name } } }`,
          ),
        () => pool.query('UPDATE "User" SET "activeTemplateId" = NULL WHERE id = $1', [account.userId]),
        // A device changes hands, and comes back in a later round.
        () =>
          pool.query('UPDATE "OssmDevice" SET "ownerId" = $1, "bubbleId" = $2 WHERE id = $3', [
            random(2) === 0 ? account.userId : bob.userId,
            `${account.username}-ossm-${random(1_000_000)}`,
            account.ossmDevices[0],
          ]),
        () =>
          pool.query('DELETE FROM "TrainerSegment" WHERE "sessionId" = $1', [account.dttSessions[random(6)]]),
      ];
      writing.push((writes[random(writes.length)] ?? expect.fail())());
    }
    await Promise.all(writing);
    for (const seen of followed) {
      const { account, path, at } = seen;
      await expect
        .poll(
          async () => ({
            ...seen.last,
            isCurrent: seen.last.data === (await currentOf(account.token, path, at)).data,
          }),
          {
            message: `seed ${seed}, round ${round}, ${path}`,
          },
        )
        .toMatchObject({ isCurrent: true });
      const { status, headers, body } = await get(account.token, path, {}, at);
      expect(seen.last, `seed ${seed}, ${path}`).toEqual({ id: headers.get('ETag') ?? '', data: body });
      expect([200, 404]).toContain(status);
      expect(seen, `seed ${seed}, ${path}`).not.toHaveProperty('error');
    }
  }
  // How many changes a stream shows one by one depends on the machine.
  expect(followed.some(({ count }) => count > 1)).toBe(true);
});

it('reads the time to wait from the preferences', () => {
  const times: readonly (readonly [string, number | undefined])[] = [
    ['wait=30', 30],
    ['wait=1, wait=2', 1],
    ['wait=x, wait=2', undefined],
    ['Wait = "7" ; a=b', 7],
    ['foo="a, wait=5", wait=6', 6],
    ['wait=1.5', undefined],
    ['await=5', undefined],
    [`wait=${'9'.repeat(400)}`, Number.POSITIVE_INFINITY],
    [`${'"\\'.repeat(8_000)}`, undefined],
  ];
  for (const [prefer, seconds] of times) expect(readWait(prefer), prefer.slice(0, 40)).toBe(seconds);
});
