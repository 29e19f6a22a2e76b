import { afterAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { createToken, digestOf, revokeToken } from '../../src/auth/tokens.ts';
import { createViewers, type Presented, type Viewers } from '../../src/auth/viewer.ts';
import type { Sql } from '../../src/database/reader/sql.ts';
import { stopClock } from '../support/clock.ts';
import { createFakeFeed } from '../support/feed.ts';
import { databaseWith } from '../support/setUp.ts';

let viewers: Viewers;
let tokenId: number;
let token: string;

const { database } = await databaseWith();
const feed = await database.openChangeFeed();
afterAll(feed.close);
const { id: userId } = await database.client.user.create({
  data: { username: 'alice', subscriptionTier: 'ultra' },
});
beforeEach(async () => {
  await database.client.apiToken.deleteMany();
  ({ id: tokenId, token } = await createToken(database.pool, 'alice', 'test'));
  viewers = createViewers(database.sql, feed, 300);
});

const viewerOf = async (header: string | undefined) =>
  viewers.known(header) ?? (await viewers.authenticate(header));
const viewer = () => ({ id: userId, tokenId, scope: 'activate' as const, digest: digestOf(token) });
/** What a token that does not expire stands for. */
const found = () => ({ ...viewer(), expiresAt: Number.POSITIVE_INFINITY });
const lastUsed = async () =>
  (await database.client.apiToken.findUniqueOrThrow({ where: { id: tokenId } })).lastUsedAt;

describe('authenticate', () => {
  it('finds the viewer of a header with a token, however its scheme and spaces are written', async () => {
    for (const header of [`Bearer ${token}`, `bearer ${token}`, `BEARER ${token}`, `Bearer   ${token} `])
      expect(await viewerOf(header), header).toEqual(found());
  });

  it('finds no viewer for any other header', async () => {
    const wrong = [
      ...[undefined, '', 'Bearer', token, `Basic ${token}`, `Bearer${token}`, `Bearer\t${token}`],
      ...[`Bearer ${token} ${token}`, `Bearer ${token}, Bearer ${token}`, `Bearer ${token.slice(0, -1)}`],
      ...[`Bearer ${token.toUpperCase()}`, `Bearer dvt_${'A'.repeat(43)}`, `Bearer ${'x'.repeat(100_000)}`],
    ];
    for (const header of wrong) expect(await viewerOf(header), header).toBeNull();
  });

  it('caches a token, so that the viewer is known without another query', async () => {
    const known = () => viewers.known(`Bearer ${token}`);
    expect(known()).toBeUndefined();
    // It is cached once its creation has been announced.
    await expect
      .poll(async () => (await viewers.authenticate(`Bearer ${token}`)) && known())
      .toEqual(found());
  });

  it('rejects a token as soon as its revocation is announced', async () => {
    expect(await viewerOf(`Bearer ${token}`)).toEqual(found());
    const announced = new Promise<void>((settle) => {
      const stop = feed.subscribe(() => {
        stop();
        settle();
      });
    });
    await revokeToken(database.client, tokenId);
    await announced;
    expect(await viewerOf(`Bearer ${token}`)).toBeNull();
    expect(await viewers.findAgain(viewer())).toBeNull();
  });

  it('rejects a cached token once a check has found it revoked, without an announcement', async () => {
    const silent = createFakeFeed();
    const unheard = createViewers(database.sql, silent.feed, 300);
    await unheard.authenticate(`Bearer ${token}`);
    await revokeToken(database.client, tokenId);
    expect(unheard.known(`Bearer ${token}`)).toEqual(found());
    expect(await unheard.findAgain(viewer())).toBeNull();
    expect(unheard.known(`Bearer ${token}`)).toBeUndefined();
  });

  it('finds a token valid only for its own user', async () => {
    expect(await viewers.findAgain(viewer())).toMatchObject(viewer());
    expect(await viewers.findAgain({ ...viewer(), id: userId + 1 })).toBeNull();
    expect(await viewers.findAgain({ ...viewer(), digest: digestOf('another') })).toBeNull();
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
        .map((digest) => ({
          id: 1,
          userId: owners.get(digest),
          scope: 'activate',
          lastUsedAt: new Date(),
          validUntil: expiries.get(digest) ?? null,
          digest,
        }));
      statements.push({
        tokens: asked.length,
        // The rows have the columns that this one statement selects.
        response: () => resolve(rows as object[] as Row[]),
        fail: () => reject(new Error('the database is away')),
      });
    });
  };
  const sql: Sql = { run, write: async () => [[], []], findMany: async () => [], count: async () => 0 };
  return { ...fake, statements, notes, viewers: createViewers(sql, fake.feed, maxAge) };
}

const tokenOf = (user: number) => `dvt_${String(user).padStart(43, 'A')}`;
const headerOf = (user: number) => `Bearer ${tokenOf(user)}`;
/** The user of each valid token in the tests without a database, by the digest of the token. */
const owners = new Map([1, 2].map((user) => [digestOf(tokenOf(user)), user]));
/** When the tokens of some digests expire. */
const expiries = new Map<string, Date>();
const idOf = (presented: Presented | null) => (presented === 'expired' ? presented : presented?.id);
/** Another token of the first user. */
const spare = 3;
owners.set(digestOf(tokenOf(spare)), 1);
const soon = () => new Promise((done) => setTimeout(done, 1));

describe('look-ups of tokens', () => {
  it('are made by one statement at a time, each for the tokens that arrived meanwhile', async () => {
    const { viewers: fake, statements } = openFake();
    const first = fake.authenticate(headerOf(1));
    await soon();
    const guesses = Array.from({ length: 1_200 }, (_, number) => fake.authenticate(headerOf(number + 10)));
    const again = fake.authenticate(headerOf(2));
    for (let statement = 0; statement < 2; statement++) {
      await soon();
      expect(statements).toHaveLength(statement + 1);
      statements[statement]?.response();
    }
    expect(await first).toMatchObject({ id: 1, tokenId: 1 });
    expect(await again).toMatchObject({ id: 2, tokenId: 1 });
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([null]));
    expect(statements.map(({ tokens }) => tokens)).toEqual([1, 1_201]);
  });

  it('fail only for the requests that waited for the failed statement, also if others wait for the same token', async () => {
    const { viewers: fake, statements } = openFake();
    const failing = fake.authenticate(headerOf(1));
    await soon();
    const other = fake.authenticate(headerOf(1));
    statements[0]?.fail();
    await expect(failing).rejects.toThrow('the database is away');
    await soon();
    statements[1]?.response();
    expect(await other).toMatchObject({ id: 1, tokenId: 1 });
  });

  it('query a token once when several requests bring it while another statement runs', async () => {
    const { viewers: fake, statements } = openFake();
    const all = [1, 1, 2, 1].map((user) => fake.authenticate(headerOf(user)));
    for (const statement of [0, 1]) {
      await soon();
      statements[statement]?.response();
    }
    expect((await Promise.all(all)).map(idOf)).toEqual([1, 1, 2, 1]);
    expect(statements.map(({ tokens }) => tokens)).toEqual([1, 2]);
  });
});

describe('the cache of tokens', () => {
  type Opened = ReturnType<typeof openFake>;
  /** Looks up the tokens by two statements. @param meanwhile called before each of them responds. */
  async function lookUp({ viewers: fake, statements }: Opened, users: number[], meanwhile = () => {}) {
    const looking = users.map((user) => fake.authenticate(headerOf(user)));
    for (let round = 0; round < 2; round++) {
      await soon();
      meanwhile();
      statements.at(-1)?.response();
    }
    expect((await Promise.all(looking)).map(idOf)).toEqual(users.map((user) => (user === spare ? 1 : user)));
  }
  const knownIn = ({ viewers: fake }: Opened) =>
    [1, 2, spare].filter((user) => fake.known(headerOf(user)) !== undefined);

  it.each<[string, (fake: Opened) => void, number[]]>([
    ['the tokens of a user have changed', (fake) => fake.announce(1, 'ApiToken'), [2]],
    ['other records of a user have changed', (fake) => fake.announce(1, 'User'), [1, 2, spare]],
    ['anything may have changed', (fake) => fake.announceAll(), []],
    ['the tokens of any user may have changed', (fake) => fake.announceAll('ApiToken'), []],
    ['the change feed is lost', (fake) => fake.lose(), []],
    ['the change feed is back', (fake) => [fake.lose(), fake.regain()], []],
    ['the change feed is not listening, and has not announced that', (fake) => fake.falter(), []],
  ])('has only what is still valid once %s, before or during the look-up', async (_, change, expected) => {
    const opened = openFake();
    await lookUp(opened, [1, 2, spare]);
    expect(knownIn(opened)).toEqual([1, 2, spare]);
    change(opened);
    expect(knownIn(opened)).toEqual(expected);
    const another = openFake();
    await lookUp(another, [1, 2, spare], () => change(another));
    expect(knownIn(another)).toEqual(expected);
    // The next look-up is stored, if the feed is well.
    another.falter(true);
    await lookUp(another, [1, 2, spare]);
    expect(knownIn(another)).toEqual([1, 2, spare]);
  });

  it('evicts a token at the maximum age, however often it is used', async () => {
    const opened = openFake({ maxAge: 10 });
    await lookUp(opened, [1]);
    const clock = stopClock();
    try {
      for (let age = 0; age < 8; age++) {
        clock.advance(1);
        expect(knownIn(opened)).toEqual([1]);
      }
      clock.advance(4);
      expect(knownIn(opened)).toEqual([]);
    } finally {
      clock.restore();
    }
  });
});

it('a token that expires is rejected from then on without another look-up, and its use is not noted', async () => {
  const now = Date.now();
  const digest = digestOf(tokenOf(1));
  expiries.set(digest, new Date(now + 5_000));
  vi.useFakeTimers({ toFake: ['Date'], now });
  try {
    const { viewers: fake, statements, notes } = openFake();
    const looking = fake.authenticate(headerOf(1));
    await soon();
    statements[0]?.response();
    expect(await looking).toMatchObject({ id: 1, expiresAt: now + 5_000 });
    vi.setSystemTime(now + 4_999);
    expect(fake.known(headerOf(1))).toMatchObject({ id: 1 });
    for (const later of [5_000, 3_600_000]) {
      vi.setSystemTime(now + later);
      expect(fake.known(headerOf(1))).toBe('expired');
    }
    expect([statements.length, notes]).toEqual([1, []]);
  } finally {
    vi.useRealTimers();
    expiries.clear();
  }
});

describe('the last-used time', () => {
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

  it('is written without delaying the authentication', async ({ skip }) => {
    skip(
      inject('engine').kind !== 'postgres',
      'on the embedded engine an open transaction has the engine to itself',
    );
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
      expect(await viewerOf(`Bearer ${token}`)).toEqual(found());
      expect(await lastUsed()).toBeNull();
    });
    await expect.poll(lastUsed).toBeInstanceOf(Date);
  });
});
