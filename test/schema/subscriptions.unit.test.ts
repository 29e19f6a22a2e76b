/** When a subscription resolves, with a feed and tokens that do what the test says. */

import { describe, expect, it, vi } from 'vitest';
import { createViewerChanges } from '../../src/schema/subscriptions.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = { id: 1, tokenId: 10 };
const bob = 2;
const maxAge = 300;

function open(isValid = async () => true) {
  const fake = createFakeFeed();
  const viewers = {
    known: () => undefined,
    authenticate: async () => null,
    isValid: () => isValid(),
  };
  const { follow, resolved } = createViewerChanges(
    { feed: fake.feed, viewers, maxAge, retryDelay: 1 },
    alice,
  );
  return {
    ...fake,
    resolved,
    changes: follow()[Symbol.asyncIterator](),
    setValid(response: () => Promise<boolean>) {
      isValid = response;
    },
  };
}

/** A check of the token whose result is the test's. */
function pending() {
  let response: (isValid: boolean) => void = () => {};
  const checked = new Promise<boolean>((settle) => {
    response = settle;
  });
  return { isValid: () => checked, response: (isValid: boolean) => response(isValid) };
}

const value = { done: false, value: undefined };
const end = { done: true, value: undefined };

/** Whether the promise is settled once everything that is under way is done. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await underwayDone();
  return settled;
}

/** Waits until everything that is under way is done. */
const underwayDone = () => new Promise((done) => setTimeout(done, 5));

describe('following', () => {
  it('yields at once, and then after each change of the viewer’s', async () => {
    const { changes, announce } = open();
    expect(await changes.next()).toEqual(value);
    for (const table of ['User', 'DttTemplateSegment', 'OssmDevice'] as const) {
      const next = changes.next();
      expect(await isSettled(next)).toBe(false);
      announce(alice.id, table);
      expect(await next).toEqual(value);
    }
  });

  it('does not yield for what concerns others', async () => {
    const { changes, announce } = open();
    await changes.next();
    const next = changes.next();
    announce(bob);
    announce(bob, 'ApiToken');
    expect(await isSettled(next)).toBe(false);
  });

  it('yields when anything may have changed', async () => {
    const { changes, lose, regain } = open();
    await changes.next();
    lose();
    expect(await changes.next()).toEqual(value);
    regain();
    expect(await changes.next()).toEqual(value);
  });

  it('makes one of what a slow reader has not asked for', async () => {
    const { changes, announce } = open();
    await changes.next();
    for (let change = 0; change < 1_000; change++) announce(alice.id);
    expect(await changes.next()).toEqual(value);
    expect(await isSettled(changes.next())).toBe(false);
  });

  it('yields nothing before the token is known to be valid, and misses nothing that comes meanwhile', async () => {
    const token = pending();
    const { changes, announce } = open(token.isValid);
    const first = changes.next();
    announce(alice.id);
    expect(await isSettled(first)).toBe(false);
    token.response(true);
    expect(await first).toEqual(value);
    // What is read now is what the change left.
    expect(await isSettled(changes.next())).toBe(false);
  });

  it('yields nothing more once a token that is being asked about turns out to be revoked', async () => {
    const token = pending();
    const { changes, announce, setValid } = open();
    await changes.next();
    const next = changes.next();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    announce(alice.id);
    expect(await isSettled(next)).toBe(false);
    token.response(false);
    expect(await next).toEqual(end);
  });

  it.each([
    ['has not read before the token was revoked', false, end],
    ['has not read before the token was doubted, unless it stands', true, value],
  ])('withholds from a slow reader what it %s', async (_, isValid, expected) => {
    const token = pending();
    const { changes, announce, setValid } = open();
    await changes.next();
    announce(alice.id);
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    const next = changes.next();
    expect(await isSettled(next)).toBe(false);
    token.response(isValid);
    expect(await next).toEqual(expected);
    expect(await isSettled(changes.next())).toBe(!isValid);
  });

  it('asks again when the token is announced while it is asked about', async () => {
    const token = pending();
    const { changes, announce, setValid } = open();
    await changes.next();
    const next = changes.next();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    token.response(true);
    expect(await next).toEqual(end);
  });

  it('ends when the token is revoked, and lets the feed go', async () => {
    const { changes, announce, setValid, followers } = open();
    await changes.next();
    const next = changes.next();
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    expect(await next).toEqual(end);
    await expect.poll(followers).toBe(0);
  });

  it('ends for a slow reader who asks after the token was revoked', async () => {
    const { changes, announce, setValid } = open();
    await changes.next();
    announce(alice.id);
    await underwayDone();
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    await underwayDone();
    expect(await changes.next()).toEqual(end);
  });

  it('goes on when another token of the viewer’s is revoked', async () => {
    const { changes, announce } = open();
    await changes.next();
    announce(alice.id, 'ApiToken');
    announce(alice.id);
    expect(await changes.next()).toEqual(value);
  });

  it('asks about the token when anybody’s may have changed, and not when it is other things of anybody’s', async () => {
    let asked = 0;
    const { changes, announceAll } = open(async () => {
      asked++;
      return true;
    });
    await changes.next();
    announceAll('DttTemplate');
    expect(await changes.next()).toEqual(value);
    expect(asked).toBe(1);
    announceAll('ApiToken');
    expect(await changes.next()).toEqual(value);
    expect(asked).toBe(2);
  });

  it('ends when the token was revoked before the feed was heard', async () => {
    const { changes, setValid, followers } = open();
    setValid(async () => false);
    expect(await changes.next()).toEqual(end);
    await expect.poll(followers).toBe(0);
  });

  it('ends when the token was revoked while the feed was down', async () => {
    const { changes, lose, regain, setValid } = open();
    await changes.next();
    lose();
    await changes.next();
    setValid(async () => false);
    regain();
    expect(await changes.next()).toEqual(end);
  });

  it.each([
    ['goes on when the token turns out to be valid', true, value],
    ['ends when the token turns out to be revoked', false, end],
  ])(
    'stays open and yields nothing while the database cannot be asked about the token, and %s',
    async (_, isValid, expected) => {
      const { changes, lose, announce, setValid } = open();
      await changes.next();
      let asked = 0;
      setValid(() => {
        asked++;
        return Promise.reject(new Error('the database is away'));
      });
      lose();
      announce(alice.id);
      const next = changes.next();
      await vi.waitFor(() => expect(asked).toBeGreaterThan(2));
      expect(await isSettled(next)).toBe(false);
      setValid(async () => isValid);
      expect(await next).toEqual(expected);
    },
  );

  it('ends by the maximum age when the token was revoked and nobody said so', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { changes, setValid } = open();
      await changes.next();
      setValid(async () => false);
      const next = changes.next();
      vi.advanceTimersByTime(maxAge * 1_000 - 1);
      expect(await isSettled(next)).toBe(false);
      vi.advanceTimersByTime(1);
      expect(await next).toEqual(end);
    } finally {
      vi.useRealTimers();
    }
  });

  it('yields again after what failed: later each time, until something succeeds, and not at all without a reader', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const soon = () => new Promise((done) => setImmediate(done));
    try {
      const { changes, resolved } = open();
      /** How long it takes, in milliseconds, until it yields. */
      async function delayAfter(hasFailed: boolean): Promise<number | undefined> {
        let waited: number | undefined;
        const next = changes.next().then(() => (waited ??= -1));
        resolved(hasFailed);
        for (let time = 0; time <= 40_000 && waited === undefined; time++) {
          await soon();
          if (waited !== undefined) break;
          vi.advanceTimersByTime(1);
          await soon();
          if (waited !== undefined) waited = time + 1;
        }
        if (waited !== undefined) await next;
        return waited;
      }
      await changes.next();
      const delays = [];
      for (let failures = 0; failures < 4; failures++) delays.push(await delayAfter(true));
      expect(delays).toEqual([1, 2, 4, 8]);
      resolved(false);
      expect(await delayAfter(true)).toBe(1);
      // Failures that come faster than it is tried again do not add up.
      for (let failures = 0; failures < 10; failures++) resolved(true);
      expect(vi.getTimerCount()).toBe(1);
      await changes.return?.();
      resolved(true);
      vi.advanceTimersByTime(40_000);
      expect(await changes.next()).toEqual(end);
    } finally {
      vi.useRealTimers();
    }
  });

  it('stops asking about the token when the reader leaves', async () => {
    const { changes, setValid, lose } = open();
    await changes.next();
    let asked = 0;
    setValid(() => {
      asked++;
      return Promise.reject(new Error('the database is away'));
    });
    lose();
    await changes.return?.();
    const before = asked;
    await new Promise((done) => setTimeout(done, 20));
    expect(asked).toBeLessThanOrEqual(before + 1);
  });

  it('leaves no timer behind when the reader leaves', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { changes } = open();
      await changes.next();
      expect(vi.getTimerCount()).toBe(1);
      await changes.return?.();
      await underwayDone();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('lets the feed go when the reader leaves', async () => {
    const { changes, followers } = open();
    await changes.next();
    expect(followers()).toBe(1);
    const next = changes.next();
    await changes.return?.();
    expect(await next).toEqual(end);
    await expect.poll(followers).toBe(0);
  });
});
