/** Which subscriptions are equal, and share a live query. */

import { expect, it } from 'vitest';
import type { Viewer } from '../../src/auth/viewer.ts';
import { createLiveQueries } from '../../src/graphql/subscribe.ts';

interface Subscription {
  readonly viewer: Viewer;
  readonly text?: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
}

/** How many live queries are created for these subscriptions, which are read at the same time. All are stopped afterwards. */
async function countLiveQueries(subscriptions: readonly Subscription[]): Promise<number> {
  let created = 0;
  let stopped = 0;
  const follow = createLiveQueries({
    watchViewer() {
      created++;
      return { isTrusted: false, recheckToken() {}, noteResult() {}, stop: () => stopped++ };
    },
    createContext: () => {
      throw new Error('nothing is run');
    },
    versions: { versionOf: () => undefined, settleVersion: async () => {}, noteRead() {} },
  });
  const readers = [];
  for (const { viewer, text = one, operationName, variables = {} } of subscriptions) {
    const results = follow(viewer, () => {}, {
      request: { query: text, operationName, variables, extensions: undefined },
      operation: {
        text,
        execute: () => {
          throw new Error('nothing is run');
        },
      },
    });
    results.next().catch(() => {});
    readers.push(results);
  }
  for (const reader of readers) await reader.return?.();
  expect(stopped).toBe(created);
  return created;
}

const one = 'subscription { viewer { id } }';
const sized = 'subscription A($n: Int) { users(first: $n) { totalCount } } subscription B { viewer { id } }';
const own = (id: number, tokenId: number): Viewer => ({ id, tokenId });
const upstream: Viewer = { id: 1, tokenId: undefined };

const equal: [string, number, Subscription[]][] = [
  ['of one token', 1, [{ viewer: own(1, 1) }, { viewer: own(1, 1) }]],
  ['of two tokens of a user', 2, [{ viewer: own(1, 1) }, { viewer: own(1, 2) }]],
  ['of two users', 2, [{ viewer: own(1, 1) }, { viewer: own(2, 2) }]],
  ['of one token of the upstream', 1, [{ viewer: upstream }, { viewer: upstream }]],
  ['of two tokens of the upstream for one user', 2, [{ viewer: upstream }, { viewer: { ...upstream } }]],
  ['of a token and one of the upstream', 2, [{ viewer: own(1, 1) }, { viewer: upstream }]],
  ['with different texts', 2, [{ viewer: own(1, 1) }, { viewer: own(1, 1), text: `${one} ` }]],
  [
    'with different operations of one text',
    2,
    ['A', 'B'].map((operationName) => ({ viewer: own(1, 1), text: sized, operationName })),
  ],
  [
    'with different variables',
    3,
    [{ n: 1 }, { n: 2 }, { n: null }, { n: 1 }].map((variables) => ({
      viewer: own(1, 1),
      text: sized,
      operationName: 'A',
      variables,
    })),
  ],
];

it.each(equal)('the number of live queries for subscriptions %s is %i', async (_, count, subscriptions) => {
  expect(await countLiveQueries(subscriptions)).toBe(count);
});

it('subscriptions with equal numbers that V8 represents differently share a live query', async () => {
  // V8 stores an integer that was in a list with a fraction as a floating-point number.
  const subscriptions = [[1], [1, 1.5].slice(0, 1)].map((list) => ({
    viewer: own(1, 1),
    text: sized,
    operationName: 'A',
    variables: { n: 1, list },
  }));
  expect(await countLiveQueries(subscriptions)).toBe(1);
});

it('subscriptions with an infinite number share no live query with others', async () => {
  const variables = [
    '{ "n": 1, "other": 1e999 }',
    '{ "n": 1, "other": null }',
    '{ "n": 1, "other": -1e999 }',
  ];
  const subscriptions = variables.map((text) => ({
    viewer: own(1, 1),
    text: sized,
    operationName: 'A',
    variables: JSON.parse(text),
  }));
  expect(await countLiveQueries(subscriptions)).toBe(3);
});
