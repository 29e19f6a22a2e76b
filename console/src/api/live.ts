/**
 * Keeps queries live. Every field of `Query` is a field of `Subscription` as well, which delivers how things are now and
 * after every change. So a query with one field at the top is asked as a subscription over the WebSocket, and each of its
 * results is the query's new result: views are written as queries, and what one of them hears, the cache tells all.
 */

import {
  type Exchange,
  makeErrorResult,
  makeResult,
  type Operation,
  type OperationResult,
  stringifyDocument,
} from '@urql/core';
import type { Client } from 'graphql-ws';
import { filter, make, merge, mergeMap, pipe, share, takeUntil } from 'wonka';

/** The context of an operation that is to be live. */
export const live = { live: true, requestPolicy: 'cache-and-network' } as const;

const isLive = ({ kind, context }: Operation): boolean => kind === 'query' && context.live === true;

/** @param socket what subscriptions go through. It connects again by itself, and then subscribes again. */
export function liveExchange(socket: Client): Exchange {
  return ({ forward }) =>
    (operations$) => {
      const running = new Set<number>();
      const shared$ = pipe(operations$, share);
      const live$ = pipe(
        shared$,
        // The cache asks again for what it misses, which is on its way.
        filter((operation) => isLive(operation) && !running.has(operation.key)),
        mergeMap((operation) => {
          const ended$ = pipe(
            shared$,
            filter(({ kind, key }) => kind === 'teardown' && key === operation.key),
          );
          return pipe(follow(operation, socket, running), takeUntil(ended$));
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

function follow(operation: Operation, socket: Client, running: Set<number>) {
  return make<OperationResult>(({ next, complete }) => {
    running.add(operation.key);
    const unsubscribe = socket.subscribe(
      { query: subscriptionOf(operation), variables: { ...operation.variables } },
      {
        next: ({ data = null, errors }) => next(makeResult(operation, { data, ...(errors && { errors }) })),
        error: (error) => {
          next(
            Array.isArray(error)
              ? makeResult(operation, { data: null, errors: error })
              : makeErrorResult(
                  operation,
                  error instanceof Error ? error : new Error('The connection is lost.'),
                ),
          );
          complete();
        },
        complete,
      },
    );
    return () => {
      running.delete(operation.key);
      unsubscribe();
    };
  });
}

/** The text of the subscription to what a query asks for. */
export function subscriptionOf({ query }: Pick<Operation, 'query'>): string {
  const definitions = query.definitions.map((definition) =>
    definition.kind === 'OperationDefinition' ? { ...definition, operation: 'subscription' } : definition,
  );
  // Only the word at its beginning is another.
  return stringifyDocument({ ...query, definitions } as typeof query);
}
