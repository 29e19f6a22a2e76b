/** The account's own tokens in GraphQL: what each token sees of them, and how they are created and revoked. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createToken, rotateToken } from '../../src/auth/tokens.ts';
import { writeGlobalId } from '../../src/schema/globalId.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { type Events, subscribe } from '../support/events.ts';
import { graphqlOnce, type TestGateway } from '../support/gateway.ts';
import { openRaw, parseResponses } from '../support/rawHttp.ts';
import { hasWebSockets } from '../support/settings.ts';
import { gatewayBeside, gatewayWith, holdTransaction } from '../support/setUp.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';

let names = 0;
const { gateway } = await gatewayWith([]);
afterEach(closeSockets);

/** An account whose first token has only the usual scopes, with another token that may manage them. */
async function open(): Promise<Account & { manager: string; managerId: number }> {
  const { database } = gateway;
  const account = await createAccount(database.client, `owner ${names++}`);
  const { id, token } = await createToken(database.pool, account.username, 'manager', { scope: 'manage' });
  return { ...account, manager: token, managerId: id };
}

const ask = (token: string, query: string, variables = {}, headers = {}) =>
  graphqlOnce(gateway, token, query, variables, headers);
const seen = '{ viewer { apiTokens { name scopes isCurrent } currentToken { name } } }';
const known = '{ viewer { currentToken { expiresAt } apiTokens { name scopes } } }';
const create = `mutation ($name: String!, $scopes: [TokenScope!]! = [READ], $expiresAt: DateTime) {
  createApiToken(name: $name, scopes: $scopes, expiresAt: $expiresAt) {
    secret token { id databaseId name prefix scopes isCurrent createdAt expiresAt lastUsedAt } viewer { apiTokens { name } }
  }
}`;
const revoke =
  'mutation ($token: ApiTokenReference!) { revokeApiToken(token: $token) { token { id } viewer { apiTokens { name } } } }';
const turns = gateway.database.pool.options.max;
/** Waits until as many statements wait for locks. */
const untilWaiting = (count = turns) =>
  expect
    .poll(async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return (await gateway.database.pool.query(waiting)).rowCount;
    })
    .toBe(count);
/** Sends different requests for a list. */
const askFor = (list: string, count: number, at: TestGateway, token: string) =>
  Array.from({ length: count }, (_, index) =>
    graphqlOnce(at, token, `{ ${list}(first: ${index + 1}) { totalCount } }`),
  );
/** Changes a token, and waits until the gateway has heard of it. */
async function changeToken({ feed }: TestGateway, id: number, change: string): Promise<void> {
  await gateway.database.pool.query(`UPDATE "ApiToken" SET ${change} WHERE id = $1`, [id]);
  expect(await feed.catchUp?.()).toBe(true);
}
const hold = (sql: string) => holdTransaction(gateway.database.pool, sql);
/** Sends the beginning of a request. @returns a function that sends the rest. */
async function begin(token: string, target: string, given: object) {
  const body = JSON.stringify(given);
  const { socket, ended } = await openRaw(gateway.url);
  const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n`;
  const own = `Authorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`;
  socket.write(head + own + body.slice(0, 5));
  return async () => {
    socket.write(body.slice(5));
    return parseResponses(await ended());
  };
}
const tokensOf = ({ userId }: Account) =>
  gateway.database.client.apiToken.findMany({
    where: { userId },
    orderBy: { id: 'asc' },
    omit: { lastUsedAt: true },
  });

describe('a token', () => {
  it('sees all active tokens if it may manage them, and otherwise itself alone; nothing is shared or cached', async () => {
    const { token, manager } = await open();
    const own = { name: 'test', scopes: ['READ', 'ACTIVATE'] };
    for (let round = 0; round < 3; round++) {
      const [all, one] = await Promise.all([ask(manager, seen), ask(token, seen)]);
      expect(all.data.viewer).toEqual({
        apiTokens: [
          { name: 'manager', scopes: ['READ', 'ACTIVATE', 'MANAGE'], isCurrent: true },
          { ...own, isCurrent: false },
        ],
        currentToken: { name: 'manager' },
      });
      expect(one.data.viewer).toEqual({
        apiTokens: [{ ...own, isCurrent: true }],
        currentToken: { name: 'test' },
      });
    }
  });

  it('creates another one, which works at once, and revokes it, which ends it at once', async () => {
    const { manager, userId } = await open();
    const expiresAt = '2100-01-01T00:00:00.000Z';
    const created = await ask(manager, create, { name: ' phone ', scopes: ['ACTIVATE', 'READ'], expiresAt });
    expect(created).toMatchObject({ status: 200, errors: undefined });
    expect(created.headers.get('Cache-Control')).toBe('no-store');
    const { secret, token, viewer } = created.data.createApiToken;
    expect(secret).toMatch(/^dvt_[\w-]{43}$/);
    expect(token).toEqual({
      id: writeGlobalId('ApiToken', token.databaseId),
      databaseId: expect.any(Number),
      name: 'phone',
      prefix: secret.slice(0, 8),
      scopes: ['READ', 'ACTIVATE'],
      isCurrent: false,
      createdAt: expect.toSatisfy((time) => Math.abs(Date.parse(time) - Date.now()) < 60_000),
      expiresAt,
      lastUsedAt: null,
    });
    expect(viewer.apiTokens.map((each: { name: string }) => each.name)).toEqual(['phone', 'manager', 'test']);
    expect((await ask(secret, '{ viewer { databaseId } }')).data.viewer).toEqual({ databaseId: userId });
    const revoked = await ask(manager, revoke, { token: { id: token.id } });
    expect(revoked.data.revokeApiToken).toEqual({
      token: { id: token.id },
      viewer: { apiTokens: [{ name: 'manager' }, { name: 'test' }] },
    });
    expect((await ask(secret, '{ viewer { databaseId } }')).status).toBe(401);
  });

  it('is a node for every token that sees it, and for no other, however little is asked of it', async () => {
    const [{ token, manager, managerId }, other] = [await open(), await open()];
    const id = writeGlobalId('ApiToken', managerId);
    const ids = [id];
    const named =
      '{ node(id: $id) { id ... on ApiToken { databaseId name isCurrent } } nodes(ids: [$id]) { id } }';
    const whole = { id, databaseId: managerId, name: 'manager', isCurrent: true };
    const queries: [query: string, variables: object, found: object, missing: object][] = [
      [`query ($id: ID!) ${named}`, { id }, { node: whole, nodes: [{ id }] }, { node: null, nodes: [null] }],
      ['query ($id: ID!) { node(id: $id) { id } }', { id }, { node: { id } }, { node: null }],
      ['query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids }, { nodes: [{ id }] }, { nodes: [null] }],
      [
        `{ node(id: "${id.replace('Q', '\\u0051')}") { __typename } }`,
        {},
        { node: { __typename: 'ApiToken' } },
        { node: null },
      ],
    ];
    for (const [query, variables, found, missing] of queries)
      for (const [secret, expected] of [
        [manager, found],
        [token, missing],
        [other.manager, missing],
        [manager, found],
      ] as const)
        expect(await ask(secret, query, variables)).toMatchObject({ errors: undefined, data: expected });
  });

  it('sees after each of several changes in one request what has changed', async () => {
    const account = await open();
    const tokens = '{ viewer { apiTokens { name } } }';
    const { data } = await ask(
      account.manager,
      `mutation { one: createApiToken(name: "a") ${tokens} two: revokeApiToken(token: { databaseId: ${(await tokensOf(account))[0]?.id} }) ${tokens}
        three: createApiToken(name: "b") ${tokens} }`,
    );
    const named = (...names: string[]) => ({ viewer: { apiTokens: names.map((name) => ({ name })) } });
    expect(data).toEqual({
      one: named('a', 'manager', 'test'),
      two: named('a', 'manager'),
      three: named('b', 'a', 'manager'),
    });
  });

  it('may revoke itself, and changes nothing after that', async () => {
    const account = await open();
    const { manager, managerId } = account;
    const { status, errors, data } = await ask(
      manager,
      `mutation { revokeApiToken(token: { databaseId: ${managerId} }) { token { id } } createApiToken(name: "next") { secret } }`,
    );
    expect([status, errors?.[0]?.message]).toEqual([401, 'Unauthorized: the token is unknown or revoked']);
    expect(data).toEqual({
      revokeApiToken: { token: { id: writeGlobalId('ApiToken', managerId) } },
      createApiToken: null,
    });
    expect((await ask(manager, seen)).status).toBe(401);
    expect(await tokensOf(account)).toHaveLength(2);
  });

  it.each([
    ['revoked', '"revokedAt" = now()', 'Unauthorized: the token is unknown or revoked'],
    ['expired', '"expiresAt" = now()', 'Unauthorized: the token has expired or was replaced'],
    ['narrowed', `scope = 'activate'`, 'Forbidden: this needs a token with the scope manage'],
    [
      'narrowed elsewhere',
      `scope = 'manage_on_loopback'`,
      'Forbidden: this needs a token with the scope manage',
    ],
  ])('changes no tokens once it is %s, although its request came before', async (_, change, message) => {
    const account = await open();
    const { manager, managerId, userId } = account;
    const token = { databaseId: (await tokensOf(account))[0]?.id };
    const { pool } = gateway.database;
    const release = await hold(`SELECT FROM "User" WHERE id = ${userId} FOR UPDATE`);
    const changes = [ask(manager, create, { name: 'too late' }), ask(manager, revoke, { token })];
    await untilWaiting(2);
    await pool.query(`UPDATE "ApiToken" SET ${change} WHERE id = $1`, [managerId]);
    const before = await tokensOf(account);
    await release();
    for (const { errors } of await Promise.all(changes)) expect(errors?.[0]?.message).toBe(message);
    expect(await tokensOf(account)).toEqual(before);
  });

  it.each([
    ['reads and activates nothing once it is revoked', '"revokedAt" = now()', [401, 401, 401, 401]],
    ['activates nothing and sees no other token once it is narrowed', `scope = 'read'`, [200, 403, 200, 403]],
  ])('%s, although its request waited for a turn', async (_, change, statuses) => {
    const { database } = gateway;
    const beside = await gatewayBeside(database);
    const { token, manager, managerId, dttTemplates, userId } = await open();
    // From here on this gateway knows both tokens.
    for (const each of [token, manager]) await graphqlOnce(beside, each, '{ viewer { username } }');
    const release = await hold('LOCK TABLE "DttSession"');
    const holding = '{ dttSessions { totalCount } }';
    const ofOther = askFor('dttSessions', turns + 2, beside, token);
    const activate = `mutation { activateTemplate(template: { databaseId: ${dttTemplates[1]} }) { viewer { id } } }`;
    // All turns are taken, and others wait for them already.
    await untilWaiting();
    const devices = '{ viewer { id } dttDevices { totalCount } }';
    const late = [holding, activate, devices, '{ viewer { apiTokens { name } } }'].map((each) =>
      graphqlOnce(beside, manager, each),
    );
    await sleep(300);
    await changeToken(beside, managerId, change);
    await release();
    for (const { status } of await Promise.all(ofOther)) expect(status).toBe(200);
    expect((await Promise.all(late)).map(({ status }) => status)).toEqual(statuses);
    const { activeTemplateId } = await database.client.user.findUniqueOrThrow({ where: { id: userId } });
    expect(activeTemplateId).not.toBe(dttTemplates[1]);
  });

  it('gets nothing in the payload of its change once it is revoked, although the payload waited for a turn', async () => {
    const { database } = gateway;
    const beside = await gatewayBeside(database);
    const [account, other, third] = await Promise.all([open(), open(), open()]);
    for (const { token } of [other, third]) await graphqlOnce(beside, token, '{ viewer { username } }');
    const releases = [await hold('LOCK TABLE "DttSession"'), await hold('LOCK TABLE "DttDevice"')];
    const others = askFor('dttSessions', turns, beside, other.token);
    await untilWaiting();
    const changing = graphqlOnce(
      beside,
      account.manager,
      'mutation { createApiToken(name: "x") { viewer { totalPoints } } }',
    );
    await sleep(300);
    others.push(...askFor('dttDevices', turns, beside, third.token));
    await sleep(300);
    await releases[0]?.();
    await expect.poll(async () => (await tokensOf(account)).length).toBe(3);
    await untilWaiting();
    await changeToken(beside, account.managerId, '"revokedAt" = now()');
    await releases[1]?.();
    await Promise.all(others);
    expect((await changing).errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  });

  it('gets no response of another token for which its request waited, once it is revoked', async () => {
    const { token, manager, managerId } = await open();
    for (const each of [token, manager]) await ask(each, '{ viewer { username } }');
    const release = await hold('LOCK TABLE "DttSession"');
    const query = '{ dttSessions { totalCount } dttDevices { totalCount } }';
    const first = ask(token, query);
    await untilWaiting(1);
    const second = ask(manager, query);
    await sleep(300);
    await changeToken(gateway, managerId, '"revokedAt" = now()');
    await release();
    expect([(await first).status, (await second).status]).toEqual([200, 401]);
  });

  it('that is narrowed while its request arrives activates nothing', async () => {
    const { manager, managerId, dttTemplates } = await open();
    const send = await begin(manager, `/api/v1/dtt/templates/${dttTemplates[1]}`, { isActive: true });
    expect((await ask(manager, seen)).status).toBe(200);
    await gateway.database.pool.query(`UPDATE "ApiToken" SET scope = 'read' WHERE id = $1`, [managerId]);
    await expect.poll(async () => (await ask(manager, create, { name: 'x' })).status).toBe(403);
    expect(await send()).toMatchObject([{ status: 403 }]);
  });

  it('that is replaced while its request arrives makes no token that outlives it, and says when it expires', async () => {
    const { manager, managerId } = await open();
    const variables = { name: 'endless', scopes: ['MANAGE'] };
    const send = await begin(manager, '/graphql', { query: create, variables });
    expect((await ask(manager, seen)).status).toBe(200);
    const keep = 3_600_000;
    await rotateToken(gateway.database.pool, managerId, keep);
    const current = '{ viewer { currentToken { expiresAt } apiTokens { expiresAt isCurrent } } }';
    const end = async () => Date.parse((await ask(manager, current)).data.viewer.currentToken.expiresAt);
    await expect.poll(end).toBeGreaterThan(Date.now());
    expect(await end()).toBeLessThanOrEqual(Date.now() + keep);
    const [response] = await send();
    expect(JSON.parse(response?.body ?? '').errors).toMatchObject([
      {
        message: 'The new token would last longer than the one that creates it',
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ]);
  });

  it('revokes the other of two that revoke each other at once, and one is left', async () => {
    const { manager, managerId } = await open();
    const { secret, token } = (await ask(manager, create, { name: 'b', scopes: ['MANAGE'] })).data
      .createApiToken;
    const both = await Promise.all([
      ask(manager, revoke, { token: { id: token.id } }),
      ask(secret, revoke, { token: { databaseId: managerId } }),
    ]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401]);
  });
});

/** What shows that a proxy has forwarded a request. */
const forwarded = {
  'X-Forwarded-For': '192.0.2.1',
  'X-Real-IP': '192.0.2.1',
  Forwarded: 'for=192.0.2.1',
  Via: '1.1 proxy',
};

it('the token of the demo account manages tokens only from the machine itself, and so do the tokens that it creates', async () => {
  const { database } = gateway;
  const { username, userId } = await createAccount(database.client, `owner ${names++}`);
  const stored = 'manage_on_loopback';
  const { token } = await createToken(database.pool, username, 'demo', { scope: stored });
  const { data } = await ask(token, create, { name: 'made', scopes: ['MANAGE'] });
  const made = data.createApiToken.secret;
  for (const each of [token, made]) {
    const here = (await ask(each, seen)).data.viewer;
    expect(here.apiTokens.find((one: { isCurrent: boolean }) => one.isCurrent).scopes).toContain('MANAGE');
    for (const [header, value] of Object.entries(forwarded)) {
      const headers = { [header]: value };
      const itself = [expect.objectContaining({ isCurrent: true, scopes: ['READ', 'ACTIVATE'] })];
      expect((await ask(each, seen, {}, headers)).data.viewer.apiTokens).toEqual(itself);
      expect((await ask(each, create, { name: 'x' }, headers)).status).toBe(403);
      // The core alone has no WebSockets.
      if (!hasWebSockets) continue;
      const socket = await connectSocket(gateway, each, { headers });
      socket.send({ id: '1', type: 'subscribe', payload: { query: seen } });
      expect((await socket.next()).payload.data.viewer.apiTokens).toEqual(itself);
    }
  }
  const scopes = await database.client.apiToken.findMany({ where: { userId }, select: { scope: true } });
  expect(scopes.map(({ scope }) => scope).toSorted()).toEqual(['activate', stored, stored]);
});

it('a live query shows to each token what it may see, and what the token has become: replaced, and narrowed', async () => {
  const { token, manager, managerId } = await open();
  const { pool } = gateway.database;
  const live = await Promise.all(
    [manager, token].map((each) => subscribe(gateway, each, `subscription ${known}`)),
  );
  const [all, one] = live as [Events, Events];
  expect((await one.next()).viewer.apiTokens).toEqual([{ name: 'test', scopes: ['READ', 'ACTIVATE'] }]);
  expect((await all.next()).viewer).toMatchObject({ currentToken: { expiresAt: null }, apiTokens: [{}, {}] });
  await ask(manager, create, { name: 'new' });
  expect((await all.next()).viewer.apiTokens).toHaveLength(3);
  await rotateToken(pool, managerId, 3_600_000);
  expect((await all.next()).viewer).toMatchObject({ currentToken: { expiresAt: expect.any(String) } });
  await pool.query(`UPDATE "ApiToken" SET scope = 'read' WHERE id = $1`, [managerId]);
  expect((await all.next()).viewer.apiTokens).toEqual([{ name: 'manager', scopes: ['READ'] }]);
  for (const each of live) each.leave();
});

it('a token that expires creates none that lasts longer, and neither does a secret that was replaced', async () => {
  const account = await open();
  const { manager, managerId } = account;
  const { pool } = gateway.database;
  const inTwoHours = new Date(Date.now() + 7_200_000).toISOString();
  const { secret } = (await ask(manager, create, { name: 'a', scopes: ['MANAGE'], expiresAt: inTwoHours }))
    .data.createApiToken;
  const { token } = await rotateToken(pool, managerId, 3_600_000);
  const before = await tokensOf(account);
  for (const [own, expiresAt] of [
    [secret, null],
    [secret, '2100-01-01T00:00:00Z'],
    [manager, inTwoHours],
  ] as const)
    expect((await ask(own, create, { name: 'b', expiresAt })).errors?.[0]).toMatchObject({
      message: 'The new token would last longer than the one that creates it',
      extensions: { code: 'BAD_USER_INPUT', argument: 'expiresAt' },
    });
  expect(await tokensOf(account)).toEqual(before);
  expect((await ask(secret, create, { name: 'b', expiresAt: inTwoHours })).errors).toBeUndefined();
  expect((await ask(token, create, { name: 'c' })).errors).toBeUndefined();
});

it('an account creates at most 20 tokens within an hour, so that it cannot leave its rate limit behind', async () => {
  const [account, other] = [await open(), await open()];
  const { pool } = gateway.database;
  const addRevoked = (userId: number, count: number) =>
    pool.query(
      `INSERT INTO "ApiToken" ("userId", name, slot, digest, "revokedAt")
       SELECT $1, 'gone', 5, sha256(random()::text::bytea), now() FROM generate_series(1, $2)`,
      [userId, count],
    );
  // Two more are active.
  await addRevoked(account.userId, 17);
  await addRevoked(other.userId, 20);
  const problemOf = async (name: string) => (await ask(account.manager, create, { name })).errors?.[0];
  const age = (minutes: number) =>
    pool.query(`UPDATE "ApiToken" SET "createdAt" = now() - $1 * interval '1 min' WHERE name = 'gone'`, [
      minutes,
    ]);
  expect(await problemOf('the twentieth')).toBeUndefined();
  await age(59);
  const before = await tokensOf(account);
  expect(await problemOf('one more')).toMatchObject({
    message: 'The account has created 20 tokens within an hour, the most that it may; try again later',
    extensions: { code: 'TOO_MANY_REQUESTS' },
  });
  expect(await tokensOf(account)).toEqual(before);
  await createToken(pool, account.username, 'by the operator');
  await age(61);
  expect(await problemOf('one more')).toBeUndefined();
  await addRevoked(account.userId, 20);
  expect(await problemOf('again')).toMatchObject({ extensions: { code: 'TOO_MANY_REQUESTS' } });
});

describe('what is rejected changes nothing', () => {
  const wrongScope = /^Variable "\$scopes" got invalid value "WRITE" at "scopes\[0\]"/;
  it.each<[what: string, variables: object, argument: string, message: string | RegExp]>([
    ['an unknown scope', { name: 'x', scopes: ['WRITE'] }, 'scopes', wrongScope],
    ['no scope', { name: 'x', scopes: [] }, 'scopes', 'scopes must name at least one scope'],
    ['a name in use', { name: 'test ' }, 'name', 'Another active token has the name "test"'],
    [
      'a token of another account',
      { token: { databaseId: 1 } },
      'token',
      'There is no active token with the id 1',
    ],
    [
      'the id of another type',
      { token: { id: writeGlobalId('User', 1) } },
      'token',
      /is the global id of a User, not of an ApiToken$/,
    ],
  ])('%s', async (_, variables, argument, message) => {
    const account = await open();
    const before = await tokensOf(account);
    const { errors } = await ask(account.manager, argument === 'token' ? revoke : create, variables);
    const code = message.toString().startsWith('There is no') ? 'NOT_FOUND' : 'BAD_USER_INPUT';
    expect(errors?.map(({ extensions }) => extensions)).toMatchObject([{ code, argument }]);
    expect(errors?.[0]?.message).toMatch(message);
    expect(await tokensOf(account)).toEqual(before);
  });

  it('a lower tier, and a sixth token: of two at once for the fifth place one is created', async () => {
    const { client } = gateway.database;
    const account = await open();
    for (const name of ['third', 'fourth']) await ask(account.manager, create, { name });
    const both = await Promise.all(['fifth', 'sixth'].map((name) => ask(account.manager, create, { name })));
    const refused = both.filter(({ errors }) => errors);
    expect(refused.map(({ errors }) => errors?.[0])).toEqual([
      expect.objectContaining({
        message: 'The account already has 5 active tokens; revoke one first',
        extensions: { code: 'FORBIDDEN' },
      }),
    ]);
    const before = await tokensOf(account);
    expect(before).toHaveLength(5);
    await client.user.update({ where: { id: account.userId }, data: { subscriptionTier: 'free' } });
    const { errors } = await ask(account.manager, create, { name: 'too low' });
    expect(errors?.[0]).toMatchObject({
      message: 'Creating a token needs the ultra tier; the account has "free"',
      extensions: { code: 'FORBIDDEN' },
    });
    expect(await tokensOf(account)).toEqual(before);
  });
});
