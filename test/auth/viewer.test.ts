import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { createToken, digestOf, revokeToken } from '../../src/auth/tokens.ts';
import { createViewers, type Viewers } from '../../src/auth/viewer.ts';
import type { ChangeFeed } from '../../src/database/feed/changeFeed.ts';
import type { Sql } from '../../src/database/reader/sql.ts';
import { stopClock } from '../support/clock.ts';
import { createFakeFeed } from '../support/feed.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

let database: TestDatabase;
let feed: ChangeFeed;
let viewers: Viewers;
let userId: number;
let tokenId: number;
let token: string;

beforeAll(async () => {
  database = await openTestDatabase();
  feed = await database.openChangeFeed();
  ({ id: userId } = await database.client.user.create({
    data: { username: 'alice', subscriptionTier: 'ultra' },
  }));
});
beforeEach(async () => {
  await database.client.apiToken.deleteMany();
  ({ id: tokenId, token } = await createToken(database.pool, 'alice', 'test'));
  viewers = createViewers(database.sql, feed, 300);
});
afterAll(async () => {
  await feed?.close();
  await database?.close();
});

const viewerOf = async (header: string | undefined) =>
  viewers.known(header) ?? (await viewers.authenticate(header));
const lastUsed = async () =>
  (await database.client.apiToken.findUniqueOrThrow({ where: { id: tokenId } })).lastUsedAt;

describe('authenticate', () => {
  it.each([
    ['as documented', (secret: string) => `Bearer ${secret}`],
    ['in lower case', (secret: string) => `bearer ${secret}`],
    ['in upper case', (secret: string) => `BEARER ${secret}`],
    ['with spaces around', (secret: string) => `Bearer   ${secret} `],
  ])('finds the viewer of a header written %s', async (_, header) => {
    expect(await viewerOf(header(token))).toEqual({ id: userId, tokenId });
  });

  it.each([
    ['a missing header', () => undefined],
    ['an empty one', () => ''],
    ['the scheme alone', () => 'Bearer'],
    ['the token alone', (secret: string) => secret],
    ['another scheme', (secret: string) => `Basic ${secret}`],
    ['no space', (secret: string) => `Bearer${secret}`],
    ['a tab for the space', (secret: string) => `Bearer\t${secret}`],
    ['something behind the token', (secret: string) => `Bearer ${secret} ${secret}`],
    ['two credentials', (secret: string) => `Bearer ${secret}, Bearer ${secret}`],
    ['half a token', (secret: string) => `Bearer ${secret.slice(0, -1)}`],
    ['a token in the wrong case', (secret: string) => `Bearer ${secret.toUpperCase()}`],
    ['an unknown token', () => `Bearer dvt_${'A'.repeat(43)}`],
    ['a very long text', () => `Bearer ${'x'.repeat(100_000)}`],
  ])('finds no viewer for %s', async (_, header) => {
    expect(await viewerOf(header(token))).toBeNull();
  });

  it('caches a token, so that the viewer is known without another query', async () => {
    expect(viewers.known(`Bearer ${token}`)).toBeUndefined();
    await viewers.authenticate(`Bearer ${token}`);
    expect(viewers.known(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
  });

  it('rejects a token as soon as its revocation is announced', async () => {
    expect(await viewerOf(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
    const announced = new Promise<void>((settle) => {
      const stop = feed.subscribe(() => {
        stop();
        settle();
      });
    });
    await revokeToken(database.client, tokenId);
    await announced;
    expect(await viewerOf(`Bearer ${token}`)).toBeNull();
    expect(await viewers.isValid({ id: userId, tokenId })).toBe(false);
  });

  it('rejects a cached token once a check has found it revoked, without an announcement', async () => {
    const silent = createFakeFeed();
    const unheard = createViewers(database.sql, silent.feed, 300);
    await unheard.authenticate(`Bearer ${token}`);
    await revokeToken(database.client, tokenId);
    expect(unheard.known(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
    expect(await unheard.isValid({ id: userId, tokenId })).toBe(false);
    expect(unheard.known(`Bearer ${token}`)).toBeUndefined();
  });

  it('finds a token valid only for its own user', async () => {
    expect(await viewers.isValid({ id: userId, tokenId })).toBe(true);
    expect(await viewers.isValid({ id: userId + 1, tokenId })).toBe(false);
    expect(await viewers.isValid({ id: userId, tokenId: tokenId + 1 })).toBe(false);
  });
});

/** Viewers whose look-ups and announcements the test controls. The valid tokens are those in `owners`. */
function openFake({ maxAge = 300, noting = async (): Promise<never[]> => [] } = {}) {
  const fake = createFakeFeed();
  const statements: { tokens: number; response(): void; fail(): void }[] = [];
  /** When last-used times were written. */
  const notes: number[] = [];
  const run = <Row extends object>(text: string, [digests]: readonly unknown[]): Promise<Row[]> => {
    if (text.startsWith('UPDATE')) {
      notes.push(Date.now());
      return noting();
    }
    return new Promise((resolve, reject) => {
      // The digests that `findTokens` passes.
      const asked = (digests as Buffer[]).map((digest) => digest.toString('hex'));
      const rows = asked
        .filter((digest) => owners.has(digest))
        .map((digest) => ({ id: 1, userId: owners.get(digest), lastUsedAt: new Date(), digest }));
      statements.push({
        tokens: asked.length,
        // The rows have the columns that this one statement selects.
        response: () => resolve(rows as object[] as Row[]),
        fail: () => reject(new Error('the database is away')),
      });
    });
  };
  const writeAndFind: Sql['writeAndFind'] = async () => ({ written: [], found: [] });
  const sql: Sql = { run, write: run, writeAndFind, findMany: async () => [], count: async () => 0 };
  return { ...fake, statements, notes, viewers: createViewers(sql, fake.feed, maxAge) };
}

const tokenOf = (user: number) => `dvt_${String(user).padStart(43, 'A')}`;
const headerOf = (user: number) => `Bearer ${tokenOf(user)}`;
/** The user of each valid token in the tests without a database, by the digest of the token. */
const owners = new Map([1, 2].map((user) => [digestOf(tokenOf(user)), user]));
/** Another token of the first user. */
const spare = 3;
owners.set(digestOf(tokenOf(spare)), 1);
const soon = () => new Promise((done) => setTimeout(done, 1));

describe('look-ups of tokens', () => {
  it('are made by one statement at a time, each for up to 500 tokens that arrived meanwhile', async () => {
    const { viewers: fake, statements } = openFake();
    const first = fake.authenticate(headerOf(1));
    await soon();
    const guesses = Array.from({ length: 1_200 }, (_, number) => fake.authenticate(headerOf(number + 10)));
    const again = fake.authenticate(headerOf(2));
    for (let statement = 0; statement < 4; statement++) {
      await soon();
      expect(statements).toHaveLength(statement + 1);
      statements[statement]?.response();
    }
    expect(await first).toEqual({ id: 1, tokenId: 1 });
    expect(await again).toEqual({ id: 2, tokenId: 1 });
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([null]));
    expect(statements.map(({ tokens }) => tokens)).toEqual([1, 500, 500, 201]);
  });

  it('fail only for the requests that waited for the failed statement', async () => {
    const { viewers: fake, statements } = openFake();
    const failing = fake.authenticate(headerOf(1));
    await soon();
    const other = fake.authenticate(headerOf(1));
    statements[0]?.fail();
    await expect(failing).rejects.toThrow('the database is away');
    await soon();
    statements[1]?.response();
    expect(await other).toEqual({ id: 1, tokenId: 1 });
  });

  it('query a token once when several requests bring it at the same time', async () => {
    const { viewers: fake, statements } = openFake();
    const all = [1, 1, 2, 1].map((user) => fake.authenticate(headerOf(user)));
    await soon();
    statements[0]?.response();
    expect((await Promise.all(all)).map((viewer) => viewer?.id)).toEqual([1, 1, 2, 1]);
    expect(statements.map(({ tokens }) => tokens)).toEqual([2]);
  });

  it('do not query the database for a text that cannot be a token', async () => {
    const { viewers: fake, statements } = openFake();
    expect(await fake.authenticate(`Bearer ${'x'.repeat(47)}`)).toBeNull();
    expect(statements).toEqual([]);
  });
});

describe('the cache of tokens', () => {
  /** Viewers that have the tokens of both users in their cache. */
  async function openWithCachedTokens() {
    const opened = openFake();
    const looking = [1, 2].map((user) => opened.viewers.authenticate(headerOf(user)));
    await soon();
    opened.statements[0]?.response();
    await Promise.all(looking);
    const known = () => [1, 2].filter((user) => opened.viewers.known(headerOf(user)) !== undefined);
    expect(known()).toEqual([1, 2]);
    return { ...opened, known };
  }

  it('evicts the token of the user whose tokens have changed, and of no other user', async () => {
    const { announce, known } = await openWithCachedTokens();
    announce(1, 'User');
    expect(known()).toEqual([1, 2]);
    announce(1, 'ApiToken');
    expect(known()).toEqual([2]);
  });

  it('evicts all tokens of the user whose tokens have changed', async () => {
    const { viewers: fake, statements, announce } = openFake();
    for (const [index, each] of [1, spare, 2].entries()) {
      const looking = fake.authenticate(headerOf(each));
      await soon();
      statements[index]?.response();
      await looking;
    }
    const known = () => [1, 2, spare].filter((each) => fake.known(headerOf(each)) !== undefined);
    expect(known()).toEqual([1, 2, spare]);
    announce(1, 'ApiToken');
    expect(known()).toEqual([2]);
  });

  it.each([
    ['the user’s tokens', (fake: ReturnType<typeof createFakeFeed>) => fake.announce(1, 'ApiToken')],
    ['everything', (fake: ReturnType<typeof createFakeFeed>) => fake.announceAll()],
  ])('does not store a look-up during which %s changed, and stores the next one', async (_, change) => {
    const opened = openFake();
    const { viewers: fake, statements } = opened;
    for (const isKnown of [false, true]) {
      const looking = fake.authenticate(headerOf(1));
      await soon();
      if (!isKnown) change(opened);
      statements.at(-1)?.response();
      expect(await looking).toEqual({ id: 1, tokenId: 1 });
      expect(fake.known(headerOf(1)) !== undefined).toBe(isKnown);
    }
  });

  it('is emptied when anything may have changed', async () => {
    const { announceAll, known } = await openWithCachedTokens();
    announceAll();
    expect(known()).toEqual([]);
  });

  it.each([
    ['is emptied when the tokens of any user may have changed', 'ApiToken', []],
    ['is left as it is when records other than tokens may have changed for any user', 'DttTemplate', [1, 2]],
  ] as const)('%s', async (_, table, cached) => {
    const { announceAll, known } = await openWithCachedTokens();
    announceAll(table);
    expect(known()).toEqual(cached);
  });

  it('is not used while the change feed is lost, and is empty when the feed is back', async () => {
    const { lose, regain, known } = await openWithCachedTokens();
    lose();
    expect(known()).toEqual([]);
    regain();
    expect(known()).toEqual([]);
  });

  it('is not used while the change feed is not listening, even if the feed has not announced that', async () => {
    const { falter, known } = await openWithCachedTokens();
    falter();
    expect(known()).toEqual([]);
  });

  it('does not store what was looked up while the change feed was lost', async () => {
    const { lose, falter, viewers: fake, statements } = openFake();
    lose();
    const looking = fake.authenticate(headerOf(1));
    await soon();
    statements[0]?.response();
    expect(await looking).toEqual({ id: 1, tokenId: 1 });
    falter(true);
    expect(fake.known(headerOf(1))).toBeUndefined();
  });

  it.each([
    ['does not store a token that is revoked', 1, [2]],
    ['stores a token although a token of another user is revoked', 3, [1, 2]],
  ])('%s during its look-up', async (_, revoked, expected) => {
    const { viewers: fake, statements, announce } = openFake();
    const looking = [1, 2].map((user) => fake.authenticate(headerOf(user)));
    await soon();
    announce(revoked, 'ApiToken');
    statements[0]?.response();
    expect(await Promise.all(looking)).toEqual([
      { id: 1, tokenId: 1 },
      { id: 2, tokenId: 1 },
    ]);
    expect([1, 2].filter((user) => fake.known(headerOf(user)) !== undefined)).toEqual(expected);
  });

  it('gives the same viewer with a connection as without one, after any sequence of requests and announcements', async () => {
    const connections = [{}, {}];
    const headers = [
      headerOf(1),
      headerOf(spare),
      headerOf(2),
      headerOf(9),
      `bearer  ${tokenOf(1)}`,
      'Bearer',
      undefined,
    ];
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ connection: fc.nat(1), header: fc.constantFrom(...headers) }) },
      fc.record({ lookUp: fc.constantFrom(1, 2, spare) }),
      fc.record({ announce: fc.constantFrom(1, 2, undefined) }),
      fc.record({ listens: fc.boolean() }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { viewers: fake, statements, announce, announceAll, falter } = openFake();
        for (const each of steps) {
          if ('header' in each)
            expect(fake.known(each.header, connections[each.connection])).toBe(fake.known(each.header));
          else if ('announce' in each) each.announce ? announce(each.announce, 'ApiToken') : announceAll();
          else if ('listens' in each) falter(each.listens);
          else {
            const looking = fake.authenticate(headerOf(each.lookUp));
            while (statements.length === 0) await Promise.resolve();
            statements.pop()?.response();
            await looking;
          }
        }
      }),
    );
  });

  it('evicts a token at the maximum age, however often it is used', async () => {
    const { viewers: fake, statements } = openFake({ maxAge: 10 });
    const looking = fake.authenticate(headerOf(1));
    await soon();
    statements[0]?.response();
    await looking;
    const clock = stopClock();
    try {
      for (let age = 0; age < 8; age++) {
        clock.advance(1);
        expect(fake.known(headerOf(1))).toBeDefined();
      }
      clock.advance(4);
      expect(fake.known(headerOf(1))).toBeUndefined();
    } finally {
      clock.restore();
    }
  });
});

describe('the last-used time', () => {
  it('is written once for a burst of requests', async () => {
    await database.pool.query(`
      CREATE TABLE IF NOT EXISTS writes (token int);
      CREATE OR REPLACE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO writes VALUES (NEW.id); RETURN NEW; END $$;
      CREATE OR REPLACE TRIGGER count_writes AFTER UPDATE ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION count_write()`);
    await Promise.all(Array.from({ length: 20 }, () => viewerOf(`Bearer ${token}`)));
    await expect.poll(lastUsed).toBeInstanceOf(Date);
    const written = await lastUsed();
    await viewerOf(`Bearer ${token}`);
    // This transaction waits until the writes that the burst has started are done.
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
    });
    const { rows } = await database.pool.query('SELECT count(*)::int FROM writes WHERE token = $1', [
      tokenId,
    ]);
    expect(rows).toEqual([{ count: 1 }]);
    expect(await lastUsed()).toEqual(written);
  });

  it('is not written again by each later request', async () => {
    const writes: string[] = [];
    const counting: Sql = {
      ...database.sql,
      run(text, values) {
        if (text.startsWith('UPDATE')) writes.push(text);
        return database.sql.run(text, values);
      },
    };
    const others = createViewers(counting, createFakeFeed().feed, 300);
    await others.authenticate(`Bearer ${token}`);
    for (let time = 0; time < 10; time++)
      expect(others.known(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
    expect(writes).toHaveLength(1);
  });

  it('is written again every minute for a cached token, even if a write fails', async () => {
    const {
      viewers: fake,
      statements,
      notes,
    } = openFake({ noting: () => Promise.reject(new Error('the database is away')) });
    const looking = fake.authenticate(headerOf(1));
    await soon();
    // This look-up finds that the token was last used just now.
    statements[0]?.response();
    await looking;
    const began = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: began });
    try {
      for (const age of [30_000, 59_000, 60_000, 61_000, 119_000, 120_000]) {
        vi.setSystemTime(began + age);
        expect(fake.known(headerOf(1))).toBeDefined();
      }
      expect(notes).toEqual([60_000, 120_000].map((age) => began + age));
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['59 seconds', 59_000, false],
    ['61 seconds', 61_000, true],
  ])('is written again %s after the last write: %s', async (_, age, isWritten) => {
    const before = new Date(Date.now() - age);
    await database.client.apiToken.update({ where: { id: tokenId }, data: { lastUsedAt: before } });
    await viewerOf(`Bearer ${token}`);
    if (isWritten)
      await expect.poll(async () => (await lastUsed())?.getTime()).toBeGreaterThan(before.getTime());
    else expect(await lastUsed()).toEqual(before);
  });

  it('is written without delaying the authentication', async ({ skip }) => {
    skip(
      inject('engine').kind !== 'postgres',
      'on the embedded engine an open transaction has the engine to itself',
    );
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
      expect(await viewerOf(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
      expect(await lastUsed()).toBeNull();
    });
    await expect.poll(lastUsed).toBeInstanceOf(Date);
  });
});
