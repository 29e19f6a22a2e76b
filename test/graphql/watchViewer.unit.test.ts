/** When a subscription is executed, with a feed and token checks that the test controls. */

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Viewer } from '../../src/auth/viewer.ts';
import { createWatchViewer } from '../../src/graphql/subscribe.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = { id: 1, tokenId: 10, scope: 'activate' } as const;
const bob = 2;
const maxAge = 300;

function open(isValid = async () => true, viewer: Viewer = alice) {
  const fake = createFakeFeed();
  const viewers = { validUntil: async () => ((await isValid()) ? Number.POSITIVE_INFINITY : 0) };
  const reports: ('changed' | 'ended')[] = [];
  const waiting: (() => void)[] = [];
  const tell = (what: 'changed' | 'ended') => () => {
    reports.push(what);
    waiting.shift()?.();
  };
  const following = createWatchViewer({ feed: fake.feed, viewers, maxAge, retryDelay: 1 })(viewer, {
    changed: tell('changed'),
    ended: tell('ended'),
  });
  return {
    ...fake,
    following,
    /** The next report to the subscription. */
    async next() {
      if (reports.length === 0) await new Promise<void>((settle) => waiting.push(settle));
      return reports.shift();
    },
    setValid(response: () => Promise<boolean>) {
      isValid = response;
    },
  };
}

/** A check of the token whose result the test gives later. */
function pending() {
  let response: (isValid: boolean) => void = () => {};
  const checked = new Promise<boolean>((settle) => {
    response = settle;
  });
  return { isValid: () => checked, response: (isValid: boolean) => response(isValid) };
}

/** Whether the promise is settled after all pending work. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await pendingWork();
  return settled;
}

/** Waits until pending work is done. */
const pendingWork = () => new Promise((done) => setTimeout(done, 5));

describe('watching a viewer', () => {
  it('reports at once, and then after each change of the viewer’s data', async () => {
    const { next, announce } = open();
    expect(await next()).toBe('changed');
    for (const table of ['User', 'DttTemplateSegment', 'OssmDevice'] as const) {
      const report = next();
      expect(await isSettled(report)).toBe(false);
      announce(alice.id, table);
      expect(await report).toBe('changed');
    }
  });

  it('does not report changes of other users', async () => {
    const { next, announce } = open();
    await next();
    const report = next();
    announce(bob);
    announce(bob, 'ApiToken');
    expect(await isSettled(report)).toBe(false);
  });

  it('reports when anything may have changed', async () => {
    const { next, lose, regain } = open();
    await next();
    lose();
    expect(await next()).toBe('changed');
    regain();
    expect(await next()).toBe('changed');
  });

  it('reports nothing before the token is known to be valid, and then all changes since at once', async () => {
    const token = pending();
    const { next, announce } = open(token.isValid);
    const first = next();
    announce(alice.id);
    expect(await isSettled(first)).toBe(false);
    token.response(true);
    expect(await first).toBe('changed');
    // The data is read after the change.
    expect(await isSettled(next())).toBe(false);
  });

  it('reports nothing more once a check finds the token revoked', async () => {
    const token = pending();
    const { next, announce, setValid, followers } = open();
    await next();
    const report = next();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    announce(alice.id);
    expect(await isSettled(report)).toBe(false);
    token.response(false);
    expect(await report).toBe('ended');
    expect(followers()).toBe(0);
  });

  it('checks the token again when its change is announced during a check', async () => {
    const token = pending();
    const { next, announce, setValid } = open();
    await next();
    const report = next();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    token.response(true);
    expect(await report).toBe('ended');
  });

  it('checks the token when any token may have changed, and not when other tables may have', async () => {
    let asked = 0;
    const { next, announceAll } = open(async () => {
      asked++;
      return true;
    });
    await next();
    announceAll('DttTemplate');
    expect(await next()).toBe('changed');
    expect(asked).toBe(1);
    announceAll('ApiToken');
    expect(await next()).toBe('changed');
    expect(asked).toBe(2);
  });

  it.each([
    ['reports the change when the token turns out to be valid', true, 'changed'],
    ['ends when the token turns out to be revoked', false, 'ended'],
  ])(
    'stays open without reports while the token cannot be checked because of the database, and %s',
    async (_, isValid, expected) => {
      const { next, lose, announce, setValid } = open();
      await next();
      let asked = 0;
      setValid(() => {
        asked++;
        return Promise.reject(new Error('the database is away'));
      });
      lose();
      announce(alice.id);
      const report = next();
      await expect.poll(() => asked).toBeGreaterThan(2);
      expect(await isSettled(report)).toBe(false);
      setValid(async () => isValid);
      expect(await report).toEqual(expected);
    },
  );

  it('ends by the maximum age when the token was revoked without an announcement', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { next, setValid } = open();
      await next();
      setValid(async () => false);
      const report = next();
      vi.advanceTimersByTime(maxAge * 1_000 - 1);
      expect(await isSettled(report)).toBe(false);
      vi.advanceTimersByTime(1);
      expect(await report).toBe('ended');
    } finally {
      vi.useRealTimers();
    }
  });

  it('retries after each failure, until an execution succeeds or the subscription ends', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { next, following } = open();
    await next();
    for (let failures = 0; failures < 3; failures++) {
      following.noteResult(true);
      expect(following.isTrusted).toBe(true);
      vi.advanceTimersByTime(1);
      expect(following.isTrusted).toBe(false);
      expect(await next()).toBe('changed');
    }
    following.noteResult(false);
    expect(vi.getTimerCount()).toBe(0);
    // Further failures before the retry do not add timers.
    for (let failures = 0; failures < 10; failures++) following.noteResult(true);
    expect(vi.getTimerCount()).toBe(1);
    following.stop();
    following.noteResult(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('unsubscribes from the feed when the subscription ends, leaves no timer, and reports nothing more', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { next, following, followers, announce, setValid } = open();
    await next();
    expect(followers()).toBe(1);
    const token = pending();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    following.stop();
    expect(followers()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    token.response(false);
    expect(await isSettled(next())).toBe(false);
  });

  it('ends at once when the signal for the end of the token is aborted, also if it was before', async () => {
    for (const isEarly of [false, true]) {
      const end = new AbortController();
      if (isEarly) end.abort();
      const { next, followers } = open(async () => true, {
        id: 1,
        tokenId: undefined,
        scope: 'activate',
        ended: end.signal,
      });
      if (!isEarly) expect(await next()).toBe('changed');
      end.abort();
      expect(await next()).toBe('ended');
      expect(followers()).toBe(0);
    }
  });

  it('ends an idle watch to the millisecond, however far off the time is, and soon after the clock was set', async () => {
    const days = 86_400_000;
    for (const isSet of [false, true]) {
      vi.useFakeTimers();
      const expiresAt = Date.now() + 60 * days;
      const reports: string[] = [];
      const { feed, followers } = createFakeFeed();
      const viewers = { validUntil: async () => expiresAt };
      const following = createWatchViewer({ feed, viewers, maxAge: 2e6 })(
        { ...alice, expiresAt },
        { changed: () => {}, ended: (problem) => reports.push(problem) },
      );
      await vi.advanceTimersByTimeAsync(isSet ? 1_000 : 60 * days - 1);
      expect([reports, following.isTrusted]).toEqual([[], true]);
      if (isSet) {
        vi.setSystemTime(expiresAt);
        expect(following.isTrusted).toBe(false);
      }
      await vi.advanceTimersByTimeAsync(isSet ? 30_000 : 1);
      expect([reports, followers()]).toEqual([['expired'], 0]);
      vi.useRealTimers();
    }
  });

  it('trusts the token only while it is known to be valid', async () => {
    const { next, following, announce, setValid } = open();
    expect(following.isTrusted).toBe(false);
    await next();
    expect(following.isTrusted).toBe(true);
    announce(alice.id);
    expect(following.isTrusted).toBe(true);
    const token = pending();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    expect(following.isTrusted).toBe(false);
    // The report of the earlier change, which is immediate.
    await next();
    token.response(true);
    await next();
    expect(following.isTrusted).toBe(true);
  });
});
