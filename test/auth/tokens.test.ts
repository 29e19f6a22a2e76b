import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  createToken,
  digestOf,
  findToken,
  findTokens,
  listTokens,
  lockViewer,
  revokeToken,
  rotateToken,
  stateOf,
  TokenError,
} from '../../src/auth/tokens.ts';
import { listUsers } from '../../src/auth/users.ts';
import { inTransaction } from '../../src/database/transaction.ts';
import { stopNow } from '../support/clock.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();

async function createUser(username: string, subscriptionTier = 'ultra'): Promise<string> {
  await database.client.user.create({ data: { username, subscriptionTier } });
  return username;
}

it('a token has a prefix and 256 random bits, and is stored as its digest alone', async () => {
  const { id, token } = await createToken(database.pool, await createUser('random'), 'x');
  expect(token).toMatch(/^dvt_[A-Za-z0-9_-]{43}$/);
  const stored = await database.client.apiToken.findUniqueOrThrow({ where: { id } });
  expect(Buffer.from(stored.digest)).toEqual(createHash('sha256').update(token).digest());
  expect(JSON.stringify(stored)).not.toContain(token.slice(4));
});

/** In milliseconds from now. */
const [sinceEver, longPast, past, soon, later, never] = [-Infinity, -2, -1, 1, 3_600_000, Infinity];

interface Times {
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  /** Until when the secret before is valid. */
  readonly previousValidUntil?: number;
}

describe('a token that', () => {
  // Each row differs from another in one time. The last two columns say when the secrets expire: null for one that is not found.
  it.each<[string, Times, ReturnType<typeof stateOf>, secret: number | null, previous: number | null]>([
    ['does not expire', {}, 'active', never, null],
    ['will expire', { expiresAt: soon }, 'active', soon, null],
    ['expires now', { expiresAt: 0 }, 'expired', 0, null],
    ['has expired', { expiresAt: past }, 'expired', past, null],
    ['is revoked', { revokedAt: past }, 'revoked', null, null],
    ['is revoked before its end', { expiresAt: soon, revokedAt: past }, 'revoked', null, null],
    ['is revoked at its end', { expiresAt: past, revokedAt: past }, 'expired', sinceEver, null],
    ['is revoked after its end', { expiresAt: longPast, revokedAt: past }, 'expired', sinceEver, null],
    ['has another secret', { previousValidUntil: soon }, 'active', never, soon],
    ['had another secret', { previousValidUntil: past }, 'active', never, past],
    ['had another secret until now', { previousValidUntil: 0 }, 'active', never, 0],
    ['ends after its other secret', { expiresAt: later, previousValidUntil: soon }, 'active', later, soon],
    ['ends before its other secret', { expiresAt: soon, previousValidUntil: later }, 'active', soon, soon],
    ['is revoked with another secret', { revokedAt: past, previousValidUntil: soon }, 'revoked', null, null],
  ])('%s is found, listed, counted, rotated and revoked accordingly', async (how, times, state, ...ends) => {
    const { client, pool, sql } = database;
    const now = stopNow();
    const user = await createUser(how);
    const first = await createToken(pool, user, how, { scope: 'read' });
    const { id } = first;
    const secrets = [first.token];
    if (times.previousValidUntil !== undefined) secrets.unshift((await rotateToken(pool, id, 0)).token);
    const data = Object.fromEntries(
      Object.entries(times).map(([name, time]) => [name, new Date(now + time)]),
    );
    const { userId } = await client.apiToken.update({ where: { id }, data });

    const found = await findTokens(sql, secrets.map(digestOf));
    for (const [index, secret] of secrets.entries()) {
      const [end, digest] = [ends[index] ?? null, digestOf(secret)];
      const validUntil = end === sinceEver ? 0 : now + (end ?? 0);
      const expected = { id, userId, scope: 'read', lastUsedAt: null, digest, validUntil };
      expect(found.get(digest)).toEqual(end === null ? undefined : expected);
      expect(await findToken(sql, secret)).toEqual(end !== null && end > 0 ? expected : null);
    }
    expect((await listTokens(sql, user)).map(stateOf)).toEqual([state]);
    const isActive = state === 'active';
    expect(await listUsers(client)).toContainEqual({
      ...{ id: userId, username: user, tier: 'ultra' },
      tokens: Number(isActive),
    });

    const about = { argument: 'token', code: 'NOT_FOUND' } as const;
    const error = new TokenError(`There is no active token with the id ${id}`, about);
    for (const change of [() => rotateToken(pool, id, 0), () => revokeToken(pool, id)]) {
      const outcome = await change().catch((reason: unknown) => reason);
      if (isActive) expect(outcome).not.toBeInstanceOf(Error);
      else expect(outcome).toEqual(error);
    }
  });
});

it('the secret of one of five tokens is replaced, and the last one stays valid for a while', async () => {
  const { pool, sql } = database;
  const user = await createUser('rotator');
  const [first] = await Promise.all(
    ['a', 'b', 'c', 'd', 'e'].map((name) => createToken(pool, user, name, { scope: 'read' })),
  );
  const { id, token } = first ?? expect.fail('there is none');
  const isFound = async (...tokens: string[]) =>
    Promise.all(tokens.map(async (each) => (await findToken(sql, each))?.scope === 'read'));
  const prefix = async () => (await listTokens(sql, user)).find((each) => each.id === id)?.prefix;
  const second = await rotateToken(pool, id, 60_000);
  expect(second.id).toBe(id);
  expect(await isFound(token, second.token)).toEqual([true, true]);
  const third = await rotateToken(pool, id, 60_000);
  expect(await isFound(token, second.token, third.token)).toEqual([false, true, true]);
  expect(await listTokens(sql, user)).toHaveLength(5);
  await pool.query('UPDATE "ApiToken" SET "lastUsedAt" = now(), digest = digest WHERE id = $1', [id]);
  expect(await prefix()).toBe(third.token.slice(0, 8));
  // An earlier version replaces the secret alone.
  await pool.query('UPDATE "ApiToken" SET digest = sha256(digest) WHERE id = $1', [id]);
  expect(await prefix()).toBeNull();
});

it('a token that expires now frees its slot and its name for another one, and stays expired if the clock is set back', async () => {
  const now = stopNow();
  const { client, pool, sql } = database;
  const user = await createUser('expiring');
  // One that was revoked before its end, and one of another user, stay as they are.
  const untouched = [
    [user, { expiresAt: new Date(now + past), revokedAt: new Date(now + longPast) }],
    [await createUser('beside'), { expiresAt: new Date(now + past) }],
  ] as const;
  for (const [username, data] of untouched)
    await client.apiToken.update({ where: { id: (await createToken(pool, username, 'a')).id }, data });
  const stay = { where: { expiresAt: new Date(now + past) }, orderBy: { id: 'asc' } } as const;
  const before = await client.apiToken.findMany(stay);
  const names = ['a', 'b', 'c', 'd', 'e'];
  const [first] = await Promise.all(names.map((name) => createToken(pool, user, name)));
  const { token } = first ?? expect.fail('there is none');
  const expireAt = (time: number) =>
    client.apiToken.updateMany({
      where: { user: { username: user }, revokedAt: null },
      data: { expiresAt: new Date(time) },
    });
  await expireAt(now + 1);
  await expect(createToken(pool, user, 'a')).rejects.toThrow('Another active token has the name');
  await expireAt(now);
  for (const name of names) await createToken(pool, user, name);
  expect(await client.apiToken.findMany(stay)).toEqual(before);
  const [found] = (await findTokens(sql, [digestOf(token)])).values();
  expect(found?.validUntil).toBe(0);
  for (const [expiresAt, message, extensions] of [
    [now, 'The time at which a token expires must be in the future', { argument: 'expiresAt' }],
    [now + 1, 'The account already has 5 active tokens; revoke one first', { code: 'FORBIDDEN' }],
  ] as const) {
    const creating = createToken(pool, user, 'f', { expiresAt: new Date(expiresAt) });
    expect(await creating.catch((reason: unknown) => reason)).toEqual(new TokenError(message, extensions));
  }
});

it('a token is not revoked while a change by it is under way', async () => {
  const { pool, sql } = database;
  const { id, token } = await createToken(pool, await createUser('changing'), 'x', { scope: 'manage' });
  const { userId, digest } = (await findToken(sql, token)) ?? expect.fail('there is none');
  const events: string[] = [];
  const changing = inTransaction(pool, async (connection) => {
    await lockViewer(connection, { id: userId, tokenId: id, digest });
    await sleep(200);
    events.push('changed');
  });
  await sleep(100);
  await revokeToken(pool, id).then(() => events.push('revoked'));
  await changing;
  expect(events).toEqual(['changed', 'revoked']);
});

it('no token is created for an unknown user, nor with a name that is empty or changes how text is displayed', async () => {
  const { pool, sql } = database;
  const user = await createUser('named');
  const visible = 'The name of a token takes visible characters alone';
  const needsName = 'A token needs a name, so that its owner can tell it from others';
  for (const [name, message] of [
    ...['', ' \t'].map((each) => [each, needsName]),
    ...['two\nlines', 'red \u001b[31m', 'csi \u009b2J', 'turned \u202e', 'two\u2028lines', '\u3164'].map(
      (each) => [each, visible],
    ),
    ['📱'.repeat(101), 'The name of a token has at most 100 characters'],
  ]) {
    const error = await createToken(pool, user, name ?? '').catch((reason: unknown) => reason);
    expect(error).toEqual(new TokenError(message ?? '', { argument: 'name' }));
  }
  await expect(createToken(pool, 'nobody', 'x')).rejects.toThrow('There is no user named "nobody"');
  expect(await listTokens(sql, user)).toEqual([]);
  await createToken(pool, user, ` Zoë’s ${'📱'.repeat(94)} `);
  await createToken(pool, user, 'Zoë');
  await expect(createToken(pool, user, 'Zoe\u0308')).rejects.toThrow('Another active token has the name');
});

it('the tokens of a user are listed newest first, with no more of a secret than its beginning', async () => {
  const [user, other] = [await createUser('lister'), await createUser('other')];
  expect(await listTokens(database.sql, user)).toEqual([]);
  const first = await createToken(database.pool, user, 'first');
  await createToken(database.pool, other, 'not mine');
  const second = await createToken(database.pool, user, 'second');
  // The database has the row that was written last at the end.
  await revokeToken(database.pool, second.id);
  const fresh = { scope: 'activate', createdAt: expect.any(Date), lastUsedAt: null, expiresAt: null };
  expect(await listTokens(database.sql, user)).toEqual([
    {
      id: second.id,
      name: 'second',
      prefix: second.token.slice(0, 8),
      revokedAt: expect.any(Date),
      ...fresh,
    },
    { id: first.id, name: 'first', prefix: first.token.slice(0, 8), revokedAt: null, ...fresh },
  ]);
  await expect(listTokens(database.sql, 'nobody')).rejects.toThrow(TokenError);
});
