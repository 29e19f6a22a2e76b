import { beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { createToken, digestOf, revokeToken } from '../../src/auth/tokens.ts';
import { createViewers, type Viewer, type Viewers } from '../../src/auth/viewer.ts';
import type { Sql } from '../../src/database/reader/sql.ts';
import { stopClock, stopNow } from '../support/clock.ts';
import { createFakeFeed } from '../support/feed.ts';
import { databaseWith } from '../support/setUp.ts';

let viewers: Viewers;
let tokenId: number;
let token: string;

const { database } = await databaseWith();
const { id: userId } = await database.client.user.create({
  data: { username: 'alice', subscriptionTier: 'ultra' },
});
beforeEach(async () => {
  await database.client.apiToken.deleteMany();
  ({ id: tokenId, token } = await createToken(database.pool, 'alice', 'test'));
  viewers = createViewers(database.sql, createFakeFeed().feed, 300);
});

const viewer = () => ({ id: userId, tokenId, scope: 'activate' as const, digest: digestOf(token) });
/** What a token that does not expire stands for. */
const found = () => ({ ...viewer(), expiresAt: Number.POSITIVE_INFINITY });
const lastUsed = async () =>
  (await database.client.apiToken.findUniqueOrThrow({ where: { id: tokenId } })).lastUsedAt;

describe('authenticate', () => {
  it('finds the viewer of a header with a token, however its scheme and spaces are written', async () => {
    for (const header of [`Bearer ${token}`, `bearer ${token}`, `BEARER ${token}`, `Bearer   ${token} `])
      expect(await viewers.authenticate(header), header).toEqual(found());
  });

  it('finds no viewer for any other header, and asks the database only about what may be a token', async () => {
    const run = vi.spyOn(database.sql, 'run');
    const wrong = [
      ...[undefined, '', 'Bearer', token, `Basic ${token}`, `Bearer${token}`, `Bearer\t${token}`],
      ...[`Bearer ${token} ${token}`, `Bearer ${token}, Bearer ${token}`, `Bearer ${token.slice(0, -1)}`],
      ...[`Bearer ${token.toUpperCase()}`, `Bearer ${token}=`, `Bearer ${'x'.repeat(100_000)}`],
    ];
    for (const header of wrong) expect(await viewers.authenticate(header), header).toBeNull();
    expect(run).not.toHaveBeenCalled();
    expect(await viewers.authenticate(`Bearer dvt_${'A'.repeat(43)}`)).toBeNull();
    expect(run).toHaveBeenCalledOnce();
  });

  it('rejects a cached token once a check has found it revoked, without an announcement', async () => {
    await viewers.authenticate(`Bearer ${token}`);
    await revokeToken(database.pool, tokenId);
    expect(viewers.known(`Bearer ${token}`)).toEqual(found());
    expect(await viewers.findAgain(viewer())).toBeNull();
    expect(viewers.known(`Bearer ${token}`)).toBeUndefined();
  });

  it('finds a token valid only for its own user', async () => {
    expect(await viewers.findAgain(viewer())).toMatchObject(viewer());
    expect(await viewers.findAgain({ ...viewer(), id: userId + 1 })).toBeNull();
    expect(await viewers.findAgain({ ...viewer(), digest: digestOf('another') })).toBeNull();
  });
});

/** Viewers whose look-ups and announcements the test controls. @param validUntil until when tokens are valid. */
function openFake({
  maxAge = 300,
  validUntil = null as Date | null,
  noting = async (): Promise<never[]> => [],
} = {}) {
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
      const rows = asked.flatMap((digest) => {
        const token = stored.get(digest);
        return token ? { ...token, validUntil, lastUsedAt: new Date(), digest } : [];
      });
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

type Opened = ReturnType<typeof openFake>;

const tokenOf = (number: number) => `dvt_${String(number).padStart(43, 'A')}`;
const headerOf = (number: number) => `Bearer ${tokenOf(number)}`;
/** The tokens in the tests without a database, by their digests. The first user has two. */
const stored = new Map(
  [
    { id: 11, userId: 1, scope: 'activate' },
    { id: 12, userId: 2, scope: 'manage_on_loopback' },
    { id: 13, userId: 1, scope: 'read' },
  ].map((token, index) => [digestOf(tokenOf(index + 1)), token]),
);
const all = [1, 2, 3];

/** What a token stands for. */
function viewerWith(number: number, expiresAt = Number.POSITIVE_INFINITY): Viewer {
  const digest = digestOf(tokenOf(number));
  const { id, userId, scope } = stored.get(digest) ?? expect.fail('there is no such token');
  const found = { id: userId, tokenId: id, digest, expiresAt };
  if (scope !== 'manage_on_loopback') return { ...found, scope: scope === 'read' ? scope : 'activate' };
  const viewer = { ...found, scope: 'activate' } as const;
  return { ...viewer, onLoopback: { ...viewer, scope: 'manage', isOnLoopback: true } };
}

const soon = () => new Promise((done) => setTimeout(done, 1));

/** Looks up tokens by two statements. @param meanwhile called before each of them responds. */
async function lookUp({ viewers: fake, statements }: Opened, numbers: number[], meanwhile = () => {}) {
  const looking = numbers.map((number) => fake.authenticate(headerOf(number)));
  for (let round = 0; round < 2; round++) {
    await soon();
    meanwhile();
    statements.at(-1)?.response();
  }
  const found = await Promise.all(looking);
  return found.map((each) => (typeof each === 'object' && each) || expect.fail('there is no viewer'));
}

describe('look-ups of tokens', () => {
  it('are made by one statement at a time, each for the different tokens that arrived meanwhile', async () => {
    const { viewers: fake, statements } = openFake();
    const first = [1, 2, 1].map((number) => fake.authenticate(headerOf(number)));
    await soon();
    const guesses = Array.from({ length: 1_200 }, (_, number) => fake.authenticate(headerOf(number + 10)));
    const again = [2, 3, 2].map((number) => fake.authenticate(headerOf(number)));
    for (let statement = 0; statement < 2; statement++) {
      await soon();
      expect(statements).toHaveLength(statement + 1);
      statements[statement]?.response();
    }
    const found = [1, 2, 1, 2, 3, 2].map((number) => viewerWith(number));
    expect(await Promise.all([...first, ...again])).toEqual(found);
    expect(new Set(await Promise.all(guesses))).toEqual(new Set([null]));
    expect(statements.map(({ tokens }) => tokens)).toEqual([1, 1_203]);
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
    expect(await other).toEqual(viewerWith(1));
  });

  it('find a viewer again as it was: of a request from the machine itself, or of another one', async () => {
    const opened = openFake();
    const [viewer = expect.fail()] = await lookUp(opened, [2]);
    for (const form of [viewer, viewer.onLoopback ?? expect.fail()]) {
      const again = opened.viewers.findAgain(form);
      opened.statements.at(-1)?.response();
      expect(await again).toEqual(form);
    }
  });
});

describe('the cache of tokens', () => {
  const knownIn = ({ viewers: fake }: Opened) => all.filter((number) => fake.known(headerOf(number)));

  it.each<[string, (fake: Opened) => void, number[]]>([
    ['the tokens of a user have changed', (fake) => fake.announce(1, 'ApiToken'), [2]],
    ['the tokens of another user have changed', (fake) => fake.announce(2, 'ApiToken'), [1, 3]],
    ['other records of a user have changed', (fake) => fake.announce(1, 'User'), all],
    ['anything may have changed', (fake) => fake.announceAll(), []],
    ['the tokens of any user may have changed', (fake) => fake.announceAll('ApiToken'), []],
    ['the change feed is lost', (fake) => fake.lose(), []],
    ['the change feed is back', (fake) => [fake.lose(), fake.regain()], []],
    ['the change feed is not listening, and has not announced that', (fake) => fake.falter(), []],
  ])('has only what is still valid once %s, before or during the look-up', async (_, change, expected) => {
    const [before, during] = [openFake(), openFake()];
    const found = [await lookUp(before, all), await lookUp(during, all, () => change(during))];
    expect(knownIn(before)).toEqual(all);
    change(before);
    for (const [index, opened] of [before, during].entries()) {
      expect(knownIn(opened)).toEqual(expected);
      // Whatever else is rechecked has to be looked up.
      for (const formOf of [(viewer: Viewer) => viewer, (viewer: Viewer) => viewer.onLoopback ?? viewer]) {
        const current = (found[index] ?? [])
          .map(formOf)
          .filter((form) => opened.viewers.recheck(form) === form);
        expect(current.map(({ tokenId = 0 }) => tokenId - 10)).toEqual(expected);
      }
      // The next look-up is stored, if the feed is well.
      opened.falter(true);
      await lookUp(opened, all);
      expect(knownIn(opened)).toEqual(all);
    }
  });

  it('evicts a token at the maximum age, however often it is used', async () => {
    const opened = openFake({ maxAge: 10 });
    await lookUp(opened, [1]);
    const clock = stopClock();
    for (let age = 0; age < 8; age++) {
      clock.advance(1);
      expect(knownIn(opened)).toEqual([1]);
    }
    clock.advance(4);
    expect(knownIn(opened)).toEqual([]);
  });
});

it('a token that expires is rejected from then on without another look-up, and its use is not noted', async () => {
  const now = stopNow();
  const opened = openFake({ validUntil: new Date(now + 5_000) });
  const { viewers: fake, statements, notes } = opened;
  const [viewer = expect.fail()] = await lookUp(opened, [1]);
  for (const [later, expected] of [
    [4_999, viewerWith(1, now + 5_000)],
    [5_000, 'expired'],
    [3_600_000, 'expired'],
  ] as const) {
    vi.setSystemTime(now + later);
    expect([fake.known(headerOf(1)), fake.recheck(viewer)]).toEqual([expected, expected]);
  }
  expect([statements.length, notes]).toEqual([1, []]);
  opened.announce(1, 'ApiToken');
  const again = fake.recheck(viewer);
  statements[1]?.response();
  expect(await again).toBe('expired');
  expect(await lookUp(openFake({ validUntil: new Date(now) }), [1]).catch(String)).toContain('no viewer');
});

describe('the last-used time', () => {
  it('is written again every minute for a cached token, even if a write fails', async () => {
    const began = stopNow();
    const opened = openFake({ noting: () => Promise.reject(new Error('the database is away')) });
    // This look-up finds that the token was last used just now.
    await lookUp(opened, [1]);
    for (const age of [30_000, 59_000, 60_000, 61_000, 119_000, 120_000]) {
      vi.setSystemTime(began + age);
      expect(opened.viewers.known(headerOf(1))).toEqual(viewerWith(1));
    }
    expect(opened.notes).toEqual([60_000, 120_000].map((age) => began + age));
  });

  it.each([
    ['never', null, 60_000],
    ['a minute before', 0, 60_000],
    ['since', 1, 1],
  ])('is not written if another process has written it meanwhile: %s', async (_, noted, expected) => {
    const began = stopNow();
    const note = vi.spyOn(database.sql, 'run');
    await viewers.authenticate(`Bearer ${token}`);
    await note.mock.results.at(-1)?.value;
    expect(await lastUsed()).toEqual(new Date(began));
    const lastUsedAt = noted === null ? null : new Date(began + noted);
    await database.client.apiToken.update({ where: { id: tokenId }, data: { lastUsedAt } });
    vi.setSystemTime(began + 60_000);
    viewers.known(`Bearer ${token}`);
    await note.mock.results.at(-1)?.value;
    expect(await lastUsed()).toEqual(new Date(began + expected));
  });

  it('is written without delaying the authentication', async ({ skip }) => {
    skip(
      inject('engine').kind !== 'postgres',
      'on the embedded engine an open transaction has the engine to itself',
    );
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
      expect(await viewers.authenticate(`Bearer ${token}`)).toEqual(found());
      expect(await lastUsed()).toBeNull();
    });
    await expect.poll(lastUsed).toBeInstanceOf(Date);
  });
});
