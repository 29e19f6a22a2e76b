/** When a subscription is executed, and what it delivers, with a feed, token checks and results that the test controls. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { Viewer } from '../../src/auth/viewer.ts';
import { createWatchViewer } from '../../src/auth/watchViewer.ts';
import { createKeyedQueue, createUserQueue } from '../../src/database/turns.ts';
import { judge } from '../../src/graphql/plugins/liveQueries.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { type HttpResponse, jsonResponse, revalidated } from '../../src/http/response.ts';
import { followChanges, type OperationFailed } from '../../src/schema/liveReads.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = { id: 1, tokenId: 10, scope: 'activate' } as const;

const resultOf = (n: number | null, code?: string): HttpResponse => ({
  ...jsonResponse(200, JSON.stringify({ ...(code && { errors: [{ extensions: { code } }] }), data: { n } })),
  errorCode: code,
});

/** @param seen the entity tag of the result that the client has. */
function open(seen?: string, closing = new AbortController()) {
  const fake = createFakeFeed();
  const state = {
    result: resultOf(0),
    runs: 0,
    /** Delays every run while it is set. */
    held: undefined as Promise<void> | undefined,
    isValid: async () => true,
  };
  const report = vi.fn();
  const stopped = vi.fn();
  const watchViewer = createWatchViewer({
    feed: fake.feed,
    viewers: { findAgain: async (viewer) => ((await state.isValid()) ? { ...viewer } : null) },
    maxAge: 300,
    retryDelay: 1,
  });
  // Only the report of the exchange is used.
  const exchange = { report } as unknown as Exchange;
  const results = followChanges(
    { watchViewer, isValid: async () => false, closing: closing.signal },
    { exchange, viewer: alice, judge, seen },
    async () => {
      state.runs++;
      const { result } = state;
      await state.held;
      return result;
    },
    stopped,
  );
  return {
    ...fake,
    state,
    results,
    report,
    closing,
    /** The number in the next result, or why there is none. */
    next: () =>
      results.next().then(
        ({ done, value }) => (done ? 'complete' : JSON.parse(value.body.toString()).data.n),
        ({ errors }: OperationFailed) => errors[0]?.extensions?.code,
      ),
    change(n: number) {
      state.result = resultOf(n);
      fake.announce(alice.id);
    },
    /** Delays every run until the returned function is called. */
    hold() {
      let release = () => {};
      state.held = new Promise((settle) => {
        release = () => {
          state.held = undefined;
          settle();
        };
      });
      return () => release();
    },
  };
}

/** What a promise settles with once pending work is done, or 'nothing'. */
const soon = (promise: Promise<unknown>) => Promise.race([promise, pendingWork().then(() => 'nothing')]);

it('a subscription runs only while its reader waits, and a slow reader gets the newest result', async () => {
  const { next, state, change } = open();
  expect(await next()).toBe(0);
  for (let n = 1; n <= 100; n++) change(n);
  await pendingWork();
  expect(state.runs).toBe(1);
  expect(await next()).toBe(100);
  expect(state.runs).toBe(2);
});

it('a subscription gives no result twice in a row', async () => {
  const { next, state, change } = open();
  await next();
  const second = next();
  await pendingWork();
  change(0);
  expect(await soon(second)).toBe('nothing');
  expect(state.runs).toBe(2);
  change(1);
  expect(await second).toBe(1);
});

it('a subscription gives no result that its client has already, and gives it again after another one', async () => {
  const first = revalidated(resultOf(0), 'Accept');
  const { next, state, change, announce } = open(first.validator?.etag);
  state.result = first;
  const second = next();
  expect(await soon(second)).toBe('nothing');
  change(1);
  expect(await second).toBe(1);
  const third = next();
  state.result = first;
  announce(alice.id);
  expect(await third).toBe(0);
});

it('a subscription delivers results even while changes come faster than runs end, and none is missed', async () => {
  const { next, hold, change } = open();
  await next();
  for (let n = 1; n <= 3; n++) {
    const release = hold();
    const result = next();
    change(2 * n);
    await pendingWork();
    change(2 * n + 1);
    release();
    expect(await result).toBe(2 * n);
    expect(await next()).toBe(2 * n + 1);
  }
});

it('a subscription ends at once when its reader leaves, and follows the feed no longer', async () => {
  const { results, next, followers } = open();
  await next();
  const waiting = next();
  void results.return?.();
  expect([await waiting, await next()]).toEqual(['complete', 'complete']);
  expect(followers()).toBe(0);
});

it('a subscription ends with an error when the gateway closes, and after a failure, which is reported', async () => {
  const closed = open();
  await closed.next();
  const last = closed.next();
  closed.closing.abort();
  expect([await last, await closed.next()]).toEqual(['SERVICE_UNAVAILABLE', 'complete']);
  const late = open(undefined, closed.closing);
  expect(await late.next()).toBe('SERVICE_UNAVAILABLE');
  const failed = open();
  const failure = new Error('secret');
  failed.state.held = Promise.reject(failure);
  expect([await failed.next(), await failed.next()]).toEqual(['INTERNAL_SERVER_ERROR', 'complete']);
  expect([closed.report.mock.calls, failed.report.mock.calls]).toEqual([[], [[failure]]]);
  expect([closed.followers(), late.followers(), failed.followers()]).toEqual([0, 0, 0]);
});

it('a subscription withholds a result, also an error that would end it, while the token is checked', async () => {
  for (const code of [undefined, 'BAD_USER_INPUT']) {
    const { next, state, announce, hold } = open();
    const release = hold();
    state.result = resultOf(1, code);
    const result = next();
    await pendingWork();
    let settle: (isValid: boolean) => void = () => {};
    state.isValid = () => new Promise((response) => (settle = response));
    announce(alice.id, 'ApiToken');
    release();
    expect(await soon(result)).toBe('nothing');
    settle(code === undefined);
    expect(await result).toBe(code === undefined ? 1 : 'UNAUTHENTICATED');
  }
});

it('a subscription withholds a result if the token was found changed while it was read', async () => {
  const { next, state, announce, hold } = open();
  const release = hold();
  const result = next();
  await pendingWork();
  announce(alice.id, 'ApiToken');
  await pendingWork();
  state.result = resultOf(1);
  release();
  expect(await result).toBe(1);
});

it.each(['INTERNAL_SERVER_ERROR', 'SERVICE_UNAVAILABLE'])(
  'a subscription runs again after the error %s, without a change',
  async (code) => {
    const { next, state } = open();
    state.result = resultOf(null, code);
    expect(await next()).toBe(null);
    state.result = resultOf(1);
    expect(await next()).toBe(1);
  },
);

it('a subscription is complete after an error that the request has caused', async () => {
  const { next, state } = open();
  state.result = resultOf(null, 'BAD_USER_INPUT');
  expect([await next(), await next()]).toEqual([null, 'complete']);
  expect(state.runs).toBe(1);
});

const maxAge = 300;

function watch(isValid = async () => true, viewer: Viewer = alice) {
  const fake = createFakeFeed();
  const viewers = { findAgain: async (given: Viewer) => ((await isValid()) ? given : null) };
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
const isSettled = async (promise: Promise<unknown>) => (await soon(promise)) !== 'nothing';

/** Waits until pending work is done. */
const pendingWork = () => new Promise((done) => setTimeout(done, 5));

describe('watching a viewer', () => {
  it('reports nothing before the token is known to be valid, and then all changes since at once', async () => {
    const token = pending();
    const { next, announce } = watch(token.isValid);
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
    const { next, announce, setValid, followers } = watch();
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
    const { next, announce, setValid } = watch();
    await next();
    const report = next();
    setValid(token.isValid);
    announce(alice.id, 'ApiToken');
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    token.response(true);
    expect(await report).toBe('ended');
  });

  it('checks the token when any token may have changed, and not when other tables or another user may have', async () => {
    let asked = 0;
    const { next, announce, announceAll } = watch(async () => {
      asked++;
      return true;
    });
    await next();
    const report = next();
    for (const table of ['ApiToken', 'DttDevice'] as const) announce(alice.id + 1, table);
    expect(await isSettled(report)).toBe(false);
    announceAll('DttTemplate');
    expect(await report).toBe('changed');
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
      const { next, lose, announce, setValid } = watch();
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
    const { next, setValid } = watch();
    await next();
    setValid(async () => false);
    const report = next();
    vi.advanceTimersByTime(maxAge * 1_000 - 1);
    expect(await isSettled(report)).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await report).toBe('ended');
  });

  it('retries after each failure, until an execution succeeds or the subscription ends', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { next, following } = watch(async () => true, { ...alice, expiresAt: Date.now() + 3_600_000 });
    await next();
    for (let failures = 0; failures < 3; failures++) {
      following.noteResult(true);
      expect(following.isTrusted).toBe(true);
      vi.advanceTimersByTime(1);
      expect(following.isTrusted).toBe(false);
      expect(await next()).toBe('changed');
    }
    following.noteResult(false);
    expect(vi.getTimerCount()).toBe(1);
    // Further failures before the retry do not add timers.
    for (let failures = 0; failures < 10; failures++) following.noteResult(true);
    expect(vi.getTimerCount()).toBe(2);
    following.stop();
    following.noteResult(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('unsubscribes from the feed when the subscription ends, leaves no timer, and reports nothing more', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { next, following, followers, announce, setValid } = watch();
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
      const viewer = { ...alice, tokenId: undefined, ended: end.signal };
      const { next, followers } = watch(async () => true, viewer);
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
      const expiresAt = Date.now() + 26 * days;
      const reports: string[] = [];
      const { feed, followers } = createFakeFeed();
      const viewers = { findAgain: async (viewer: Viewer) => ({ ...viewer, expiresAt }) };
      const following = createWatchViewer({ feed, viewers, maxAge: isSet ? 10 : 2e6 })(
        { ...alice, expiresAt },
        // Nothing may follow the end.
        { changed: () => reports.length > 0 && reports.push(''), ended: (problem) => reports.push(problem) },
      );
      await vi.advanceTimersByTimeAsync(isSet ? 1_000 : 26 * days - 1);
      expect([reports, following.isTrusted]).toEqual([[], true]);
      if (isSet) {
        vi.setSystemTime(expiresAt);
        expect(following.isTrusted).toBe(false);
      }
      await vi.advanceTimersByTimeAsync(isSet ? 30_000 : 1);
      expect([reports, followers()]).toEqual([['expired'], 0]);
    }
  });
});

it('the queue runs work of the same key one after the other, and work of other keys meanwhile', async () => {
  const inTurn = createKeyedQueue<string>(async () => {});
  const events: string[] = [];
  const work = (name: string) => async () => {
    events.push(`${name} begins`);
    await sleep(5);
    events.push(`${name} ends`);
    return name;
  };
  const all = [inTurn('a', work('a1')), inTurn('a', work('a2')), inTurn('b', work('b'))];
  const isSecond = all[0]?.then(() => sleep(1)).then(() => inTurn('a', work('a3')));
  expect(await Promise.all([...all, isSecond])).toEqual(['a1', 'a2', 'b', 'a3']);
  expect(events.filter((line) => line.startsWith('a'))).toEqual([
    'a1 begins',
    'a1 ends',
    'a2 begins',
    'a2 ends',
    'a3 begins',
    'a3 ends',
  ]);
  expect(events.indexOf('b begins')).toBeLessThan(events.indexOf('a2 begins'));
});

it('the queue pauses after work of a key, even if it failed, and is given its duration to choose the pause', async () => {
  const durations: number[] = [];
  let resume = () => {};
  const inTurn = createKeyedQueue<string>((duration) => {
    durations.push(duration);
    return new Promise<void>((settle) => {
      resume = settle;
    });
  });
  await expect(inTurn('a', () => sleep(5).then(() => Promise.reject(new Error('no'))))).rejects.toThrow('no');
  let hasBegun = false;
  const second = inTurn('a', async () => {
    hasBegun = true;
  });
  await sleep(5);
  expect(hasBegun).toBe(false);
  resume();
  await second;
  expect(hasBegun).toBe(true);
  expect(durations[0]).toBeGreaterThan(1);
  expect(durations[0]).toBeLessThan(performance.now());
});

it('a user rests for as long as work of theirs took', async () => {
  const inTurn = createUserQueue();
  vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValueOnce(50);
  const ended = await inTurn(1, async () => Date.now());
  const rest = (await inTurn(1, async () => Date.now())) - ended;
  expect(rest).toBeGreaterThanOrEqual(49);
  expect(rest).toBeLessThan(1_000);
});
