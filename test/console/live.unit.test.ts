/** Live queries, with a real client and cache of urql, but without a socket or a browser. */

import { Client, fetchExchange, gql, type OperationResult } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import type { Client as GraphqlWs, Sink, SubscribePayload } from 'graphql-ws';
import { beforeEach, expect, test, vi } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { live, liveExchanges } from '../../console/src/api/live.ts';

const active = gql(`query Active { viewer { id activeDttTemplate { id name } } }`);
const lengths = gql(`query Lengths { viewer { id activeDttTemplate { id length } } }`);
const program = gql(`query Program($databaseId: Int!) { dttTemplate(databaseId: $databaseId) { id name } }`);
const activate = gql(`mutation Activate { activateTemplate { viewer { id activeDttTemplate { id } } } }`);

const template = (id: number, fields: object) => ({ __typename: 'DttTemplate', id: String(id), ...fields });
const viewer = (activeDttTemplate: object | null) => ({
  data: { viewer: { __typename: 'User', id: '1', activeDttTemplate } },
});
const one = viewer(template(1, { name: 'One' }));
const two = viewer(template(2, { name: 'Two' }));
const nameOf = (result: OperationResult | undefined) => result?.data?.viewer?.activeDttTemplate?.name;
const errorsWith = (code: string, retryAfter?: number) => [
  { message: `It is ${code}`, extensions: { code, retryAfter } },
];

beforeEach(() => void vi.useFakeTimers());

/** A fake of the graphql-ws client without a WebSocket: the test decides which results arrive. */
function createFakeSocket() {
  const all: (Sink & { readonly payload: SubscribePayload; isOver: boolean })[] = [];
  const subscribe: GraphqlWs['subscribe'] = (payload, sink) => {
    // What the gateway sends has no types.
    const subscription = { ...(sink as Sink), payload, isOver: false };
    all.push(subscription);
    return () => {
      subscription.isOver = true;
      // The real client also completes a moment later.
      queueMicrotask(() => sink.complete());
    };
  };
  /** @returns the subscriptions that have not been ended. */
  const open = () => all.filter(({ isOver }) => !isOver);
  return { subscribe, all, open };
}

function createConsole() {
  const socket = createFakeSocket();
  const outages: (string | undefined)[] = [];
  const { beforeCache, afterCache } = liveExchanges({
    ...socket,
    outageChanged: (message) => {
      if (message !== outages.at(-1)) outages.push(message);
    },
  });
  let activated: object = {};
  const client = new Client({
    url: 'http://gateway.example/graphql',
    preferGetMethod: false,
    exchanges: [
      beforeCache,
      cacheExchange({ keys: { ActivateTemplatePayload: () => null } }),
      afterCache,
      fetchExchange,
    ],
    fetch: () => Promise.resolve(Response.json({ data: activated })),
  });

  /** Subscribes to a query as a view does that shows it. */
  function show(query: typeof active, variables = {}) {
    const results: OperationResult[] = [];
    const { unsubscribe } = pipe(
      client.query(query, variables, live),
      subscribe((result) => {
        results.push(result);
      }),
    );
    return {
      hide: unsubscribe,
      results,
      get last() {
        return results.at(-1);
      },
    };
  }
  /** Activates a template. The payload contains only its id. */
  async function mutate(id: number) {
    const payload = { __typename: 'ActivateTemplatePayload', ...viewer(template(id, {})).data };
    activated = { activateTemplate: payload };
    await client.mutation(activate, {});
    await settle();
  }
  return { socket, show, mutate, outages };
}

/** Waits until all pending results are delivered. */
const settle = () => vi.advanceTimersByTimeAsync(1);

test('A query that is shown twice is subscribed to once, and both views get every result', async () => {
  const { socket, show } = createConsole();
  const first = show(active);
  socket.all[0]?.next(one);
  const second = show(active);
  expect(nameOf(second.last)).toBe('One');
  await settle();
  socket.all[0]?.next(two);
  expect([first, second].map(({ last }) => nameOf(last))).toEqual(['Two', 'Two']);
  first.hide();
  expect(socket.open()).toHaveLength(1);
  socket.all[0]?.next(one);
  expect(nameOf(second.last)).toBe('One');
  second.hide();
  expect(socket.open()).toHaveLength(0);
  expect(socket.all).toHaveLength(1);
});

test('A query that is hidden and shown again has the cached result at once, and subscribes again', async () => {
  const { socket, show } = createConsole();
  const before = show(active);
  socket.all[0]?.next(one);
  before.hide();
  const after = show(active);
  expect(nameOf(after.last)).toBe('One');
  await settle();
  expect(socket.open()).toHaveLength(1);
  // A late result of the subscription that was ended.
  socket.all[0]?.next(two);
  expect(nameOf(after.last)).toBe('One');
  socket.all[1]?.next(two);
  expect(nameOf(after.last)).toBe('Two');
});

test.each([
  ['TOO_MANY_REQUESTS', 12, 12],
  ['SERVICE_UNAVAILABLE', undefined, 5],
])(
  'A subscription that fails with %s and retryAfter %s is started again after %s s',
  async (code, retryAfter, seconds) => {
    const { socket, show, outages } = createConsole();
    const shown = show(active);
    socket.all[0]?.error(errorsWith(code, retryAfter));
    expect(shown.last).toBeUndefined();
    await vi.advanceTimersByTimeAsync(seconds * 1_000 - 1);
    expect(socket.all).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(socket.all).toHaveLength(2);
    socket.all[1]?.next(one);
    expect(nameOf(shown.last)).toBe('One');
    expect(outages).toEqual([`It is ${code}`, undefined]);
  },
);

test('While nothing can be read, views keep what they had, and the reason is given once for all of them', async () => {
  const { socket, show, outages } = createConsole();
  const [names, programs] = [show(active), show(program, { databaseId: 7 })];
  socket.all[0]?.next(one);
  const away = errorsWith('SERVICE_UNAVAILABLE');
  socket.all[0]?.next({ data: { viewer: null }, errors: away });
  socket.all[1]?.next({ data: { dttTemplate: null }, errors: away });
  expect(nameOf(names.last)).toBe('One');
  expect([names.last?.error, programs.last]).toEqual([undefined, undefined]);
  socket.all[0]?.next(two);
  expect(outages).toEqual(['It is SERVICE_UNAVAILABLE']);
  programs.hide();
  await settle();
  expect(outages).toEqual(['It is SERVICE_UNAVAILABLE', undefined]);
});

test('A query that fails with BAD_USER_INPUT is not sent again until it is hidden and shown again', async () => {
  const { socket, show } = createConsole();
  const shown = show(active);
  socket.all[0]?.error(errorsWith('BAD_USER_INPUT'));
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(socket.all).toHaveLength(1);
  const beside = show(active);
  expect(beside.last?.error?.message).toContain('BAD_USER_INPUT');
  shown.hide();
  beside.hide();
  show(active);
  expect(socket.all).toHaveLength(2);
});

test('A subscription that the gateway ends, or whose connection is lost, is started again after 5 s', async () => {
  const { socket, show } = createConsole();
  const shown = show(active);
  socket.all[0]?.next(one);
  socket.all[0]?.complete();
  await vi.advanceTimersByTimeAsync(4_999);
  expect(socket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  socket.all[1]?.error(new Event('close'));
  expect(nameOf(shown.last)).toBe('One');
  await vi.advanceTimersByTimeAsync(5_000);
  socket.all[2]?.next(two);
  expect(nameOf(shown.last)).toBe('Two');
});

test('A subscription that ended is not started again when its query is no longer shown', async () => {
  const { socket, show } = createConsole();
  const shown = show(active);
  socket.all[0]?.complete();
  shown.hide();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(socket.all).toHaveLength(1);
});

test('A subscription is started again within about 5 minutes, however long the gateway asks to wait', async () => {
  const { socket, show } = createConsole();
  show(active);
  await settle();
  // Longer than a timer can wait.
  socket.all.at(-1)?.error(errorsWith('TOO_MANY_REQUESTS', 10_000_000));
  await vi.advanceTimersByTimeAsync(290_000);
  expect(socket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(socket.all).toHaveLength(2);
});

test('A query for which the cache lacks a field is not sent again, and has its last result until the next event', async () => {
  const { socket, show, mutate } = createConsole();
  const shown = show(active);
  socket.all[0]?.next(one);
  // The cache does not have the name of the program that is active now.
  await mutate(3);
  expect(nameOf(shown.last)).toBe('One');
  const beside = show(active);
  expect(nameOf(beside.last)).toBe('One');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(socket.all).toHaveLength(1);
  socket.all[0]?.next(two);
  expect([shown, beside].map(({ last }) => nameOf(last))).toEqual(['Two', 'Two']);
});

test('A field that fails causes no query to be sent again, whatever results other queries get', async () => {
  const { socket, show } = createConsole();
  const failing = { ...viewer(null), errors: [{ message: 'Away', path: ['viewer', 'activeDttTemplate'] }] };
  const [names, lasting] = [show(active), show(lengths)];
  for (let round = 1; round <= 5; round++) {
    for (const subscription of socket.all) subscription.next(failing);
    await vi.advanceTimersByTimeAsync(10_000);
  }
  expect(socket.all).toHaveLength(2);
  expect(names.results.length + lasting.results.length).toBeLessThan(40);
  for (const { last } of [names, lasting]) {
    expect(last?.error?.graphQLErrors[0]?.message).toBe('Away');
    expect(last?.data).toMatchObject({ viewer: { id: '1', activeDttTemplate: null } });
  }
  // A view that shows the query later gets the error as well.
  expect(show(active).last?.error?.message).toContain('Away');
});
