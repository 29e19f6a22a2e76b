/** The results of a subscription. Each test controls its feed, its token and its results. */

import { expect, it } from 'vitest';
import { createWatchViewer, followChanges } from '../../src/graphql/subscribe.ts';
import { createFakeFeed } from '../support/feed.ts';

const alice = { id: 1, tokenId: 10, scope: 'activate' } as const;

/** Waits until all pending work is done. */
const pendingWorkDone = () => new Promise((settle) => setTimeout(settle, 5));

const resultOf = (n: number | null, code?: string) => ({
  body: Buffer.from(JSON.stringify({ ...(code && { errors: [{ extensions: { code } }] }), data: { n } })),
  errorCode: code,
});

function open() {
  const fake = createFakeFeed();
  const state = {
    result: resultOf(0),
    runs: 0,
    /** Delays every run while it is set. */
    held: undefined as Promise<void> | undefined,
    isValid: async () => true,
  };
  const results = followChanges({
    async run() {
      state.runs++;
      const { result } = state;
      await state.held;
      return result;
    },
    watch: (observer) =>
      createWatchViewer({
        feed: fake.feed,
        viewers: { validUntil: async () => ((await state.isValid()) ? Number.POSITIVE_INFINITY : 0) },
        maxAge: 300,
        retryDelay: 1,
      })(alice, observer),
    reason: async () => 'revoked',
  });
  return {
    ...fake,
    state,
    results,
    /** The number in the next result, or why there is none. */
    next: () =>
      results.next().then(({ done, value }) => (done ? (value ?? 'complete') : JSON.parse(value).data.n)),
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
const soon = (promise: Promise<unknown>) => Promise.race([promise, pendingWorkDone().then(() => 'nothing')]);

it('a subscription runs only while its reader waits, and a slow reader gets the newest result', async () => {
  const { next, state, change } = open();
  expect(await next()).toBe(0);
  for (let n = 1; n <= 100; n++) change(n);
  await pendingWorkDone();
  expect(state.runs).toBe(1);
  expect(await next()).toBe(100);
  expect(state.runs).toBe(2);
});

it('a subscription gives no result twice in a row', async () => {
  const { next, state, change } = open();
  await next();
  const second = next();
  await pendingWorkDone();
  change(0);
  expect(await soon(second)).toBe('nothing');
  expect(state.runs).toBe(2);
  change(1);
  expect(await second).toBe(1);
});

it('a subscription delivers results even while changes come faster than runs end, and none is missed', async () => {
  const { next, hold, change } = open();
  await next();
  for (let n = 1; n <= 3; n++) {
    const release = hold();
    const result = next();
    change(2 * n);
    await pendingWorkDone();
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
  results.stop();
  expect([await waiting, await next()]).toEqual(['complete', 'complete']);
  expect(followers()).toBe(0);
});

it('a subscription withholds a result, also an error that would end it, while the token is checked', async () => {
  for (const code of [undefined, 'BAD_USER_INPUT']) {
    const { next, state, announce, hold } = open();
    const release = hold();
    state.result = resultOf(1, code);
    const result = next();
    await pendingWorkDone();
    let settle: (isValid: boolean) => void = () => {};
    state.isValid = () => new Promise((response) => (settle = response));
    announce(alice.id, 'ApiToken');
    release();
    expect(await soon(result)).toBe('nothing');
    settle(code === undefined);
    expect(await result).toBe(code === undefined ? 1 : 'revoked');
  }
});

it('a subscription ends with the reason when its token ends', async () => {
  const { next, state, announce } = open();
  await next();
  const last = next();
  state.isValid = async () => false;
  announce(alice.id, 'ApiToken');
  expect([await last, await next()]).toEqual(['revoked', 'revoked']);
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
