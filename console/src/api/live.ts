/**
 * Keeps queries live. Every field of `Query` is a field of `Subscription` as well, which delivers how things are now and
 * after every change. So a query with one field at the top is asked as a subscription over the WebSocket, and each of its
 * results is the query's new result: views are written as queries, and what one of them hears, the cache tells all.
 */

import {
  type Exchange,
  makeErrorResult,
  makeOperation,
  makeResult,
  type Operation,
  type OperationResult,
  stringifyDocument,
} from '@urql/core';
import type { Client } from 'graphql-ws';
import { filter, make, map, merge, mergeMap, pipe, share, takeUntil } from 'wonka';

/** The context of an operation that is to be live. */
export const live = { live: true, requestPolicy: 'cache-and-network' } as const;

/** In seconds: how long to wait before what has failed for now, or has ended, is asked for again. */
const pause = 5;

/** In seconds: whatever it says, it is asked for again after so long. */
const longestPause = 300;

/** The codes of errors that may pass by themselves. */
const passing = new Set(['TOO_MANY_REQUESTS', 'SERVICE_UNAVAILABLE', 'BAD_GATEWAY', 'INTERNAL_SERVER_ERROR']);

const isLive = ({ kind, context }: Operation): boolean => kind === 'query' && context.live === true;

/**
 * Two exchanges, before and behind the cache.
 * @param socket what subscriptions go through. It connects again by itself, and then subscribes again.
 */
export function liveExchanges(socket: Pick<Client, 'subscribe'>): { before: Exchange; behind: Exchange } {
  /** The keys of the queries that are followed. */
  const followed = new Set<number>();
  return { before: readOnce(followed), behind: follow(socket, followed) };
}

/**
 * What is followed already is only read from the cache, by whomever it is asked for again: by another part of a view, or by
 * the cache itself, since it holds something new. What it misses is on its way, and until then the last result stays. Asked
 * for, the cache would reserve a place for it, below what comes earlier.
 */
function readOnce(followed: ReadonlySet<number>): Exchange {
  return ({ forward }) =>
    (operations$) =>
      pipe(
        operations$,
        map((operation) =>
          isLive(operation) && followed.has(operation.key)
            ? makeOperation(operation.kind, operation, { ...operation.context, requestPolicy: 'cache-only' })
            : operation,
        ),
        forward,
        filter(({ operation, data, error }) => {
          const isRead = isLive(operation) && operation.context.requestPolicy === 'cache-only';
          return !isRead || data != null || error !== undefined;
        }),
      );
}

function follow(socket: Pick<Client, 'subscribe'>, followed: Set<number>): Exchange {
  return ({ forward }) =>
    (operations$) => {
      const shared$ = pipe(operations$, share);
      const live$ = pipe(
        shared$,
        filter((operation) => isLive(operation) && !followed.has(operation.key)),
        mergeMap((operation) => {
          const ended$ = pipe(
            shared$,
            filter(({ kind, key }) => kind === 'teardown' && key === operation.key),
          );
          return pipe(resultsOf(operation, socket, followed), takeUntil(ended$));
        }),
      );
      const others$ = pipe(
        shared$,
        filter((operation) => !isLive(operation)),
        forward,
      );
      return merge([live$, others$]);
    };
}

/** They never end by themselves: as long as somebody shows a query, it is followed. */
function resultsOf(operation: Operation, socket: Pick<Client, 'subscribe'>, followed: Set<number>) {
  return make<OperationResult>(({ next }) => {
    const payload = { query: subscriptionOf(operation), variables: { ...operation.variables } };
    let unsubscribe = () => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;

    function beginAfter(seconds: number) {
      // A subscription is told that it is complete also when it was ended from here.
      if (isOver) return;
      clearTimeout(timer);
      timer = setTimeout(begin, Math.min(seconds, longestPause) * 1_000);
    }
    function begin() {
      unsubscribe = socket.subscribe(payload, {
        next: ({ data = null, errors }) => next(makeResult(operation, { data, ...(errors && { errors }) })),
        error(problem) {
          const result = resultOfFailure(operation, problem);
          next(result);
          const wait = untilItPasses(result);
          if (wait !== undefined) beginAfter(wait);
        },
        complete: () => beginAfter(pause),
      });
    }
    followed.add(operation.key);
    begin();
    return () => {
      isOver = true;
      followed.delete(operation.key);
      clearTimeout(timer);
      unsubscribe();
    };
  });
}

/** @param problem errors of GraphQL, or why there is no connection. */
function resultOfFailure(operation: Operation, problem: unknown): OperationResult {
  if (Array.isArray(problem)) return makeResult(operation, { data: null, errors: problem });
  return makeErrorResult(
    operation,
    problem instanceof Error ? problem : new Error('The connection is lost.'),
  );
}

/** In seconds, undefined for what would be refused again and again. */
function untilItPasses({ error }: OperationResult): number | undefined {
  const { graphQLErrors = [], networkError } = error ?? {};
  if (networkError) return pause;
  const all = graphQLErrors.map(({ extensions: { code, retryAfter } }) =>
    passing.has(String(code)) ? Math.max(Number(retryAfter) || 0, pause) : undefined,
  );
  return all.includes(undefined) ? undefined : Math.max(...all.map((wait) => wait ?? 0));
}

/** The text of the subscription to what a query asks for. */
export function subscriptionOf({ query }: Pick<Operation, 'query'>): string {
  const definitions = query.definitions.map((definition) =>
    definition.kind === 'OperationDefinition' ? { ...definition, operation: 'subscription' } : definition,
  );
  // Only the word at its beginning is another.
  return stringifyDocument({ ...query, definitions } as typeof query);
}
