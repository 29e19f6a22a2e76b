/**
 * Keeps queries live. The schema has every field of `Query` in `Subscription` too, where it delivers the current result, and
 * another one after every change. So a query with one top-level field is sent as a subscription over the WebSocket, and each
 * event becomes the query's new result. Views are written as queries, and the cache passes a change that one view receives
 * on to all of them.
 */

import {
  type CombinedError,
  type Exchange,
  makeOperation,
  makeResult,
  type Operation,
  type OperationResult,
  stringifyDocument,
} from '@urql/core';
import type { Client } from 'graphql-ws';
import { filter, make, map, merge, mergeMap, pipe, share, takeUntil } from 'wonka';

/** The context of a query that is to be kept live. */
export const live = { live: true, requestPolicy: 'cache-and-network' } as const;

/** In seconds: the delay before a subscription that has failed or ended is started again. */
const retryDelay = 5;

/** In seconds: the longest delay, even if the gateway asks for more. */
const maxRetryDelay = 300;

/** The codes of errors that may be over at the next attempt. */
const transientCodes = new Set([
  'TOO_MANY_REQUESTS',
  'SERVICE_UNAVAILABLE',
  'BAD_GATEWAY',
  'INTERNAL_SERVER_ERROR',
]);

const isLive = ({ kind, context }: Operation): boolean => kind === 'query' && context.live === true;

interface Socket extends Pick<Client, 'subscribe'> {
  /**
   * Called when queries begin to fail for a reason that may be over soon, such as a database that is away, and when all work
   * again. They keep the results that they had. @param message of the gateway; undefined when all work again.
   */
  outageChanged(message: string | undefined): void;
}

/** The subscriptions, by the keys of their queries, each with the message of its outage. */
type Subscribed = Map<number, string | undefined>;

/**
 * Creates two exchanges, one to stand before the cache and one after it.
 * @param socket carries the subscriptions. It reconnects by itself, and then subscribes again.
 */
export function liveExchanges(socket: Socket): { beforeCache: Exchange; afterCache: Exchange } {
  const subscribed: Subscribed = new Map();
  return {
    beforeCache: readSubscribedFromCache(subscribed),
    afterCache: createSubscriptionExchange(socket, subscribed),
  };
}

/**
 * A query may be executed again while it has a subscription: by another part of a view, or by the cache when its data has
 * changed. Then it is read from the cache alone. Data that the cache does not have yet will come through the subscription;
 * until then the last result stays. If the query were forwarded, the cache would reserve a layer for its result, below the
 * layers of results that arrive earlier.
 */
function readSubscribedFromCache(subscribed: Pick<Subscribed, 'has'>): Exchange {
  return ({ forward }) =>
    (operations$) =>
      pipe(
        operations$,
        map((operation) =>
          isLive(operation) && subscribed.has(operation.key)
            ? makeOperation(operation.kind, operation, { ...operation.context, requestPolicy: 'cache-only' })
            : operation,
        ),
        forward,
        filter(({ operation, data, error }) => {
          const isCacheRead = isLive(operation) && operation.context.requestPolicy === 'cache-only';
          return !isCacheRead || data != null || error !== undefined;
        }),
      );
}

/** Sends live queries as subscriptions, and forwards everything else. */
function createSubscriptionExchange(socket: Socket, subscribed: Subscribed): Exchange {
  return ({ forward }) =>
    (operations$) => {
      const shared$ = pipe(operations$, share);
      const live$ = pipe(
        shared$,
        filter((operation) => isLive(operation) && !subscribed.has(operation.key)),
        mergeMap((operation) => {
          const ended$ = pipe(
            shared$,
            filter(({ kind, key }) => kind === 'teardown' && key === operation.key),
          );
          return pipe(subscribe(operation, socket, subscribed), takeUntil(ended$));
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

/**
 * The results of a live query. The stream never ends by itself: a subscription that fails or ends is started again until the
 * query is torn down.
 */
function subscribe(operation: Operation, socket: Socket, subscribed: Subscribed) {
  return make<OperationResult>(({ next }) => {
    const payload = { query: subscriptionOf(operation), variables: { ...operation.variables } };
    let unsubscribe = () => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isTornDown = false;

    function restartAfter(seconds: number) {
      // graphql-ws calls `complete` also when this side has unsubscribed.
      if (isTornDown) return;
      clearTimeout(timer);
      timer = setTimeout(start, Math.min(seconds, maxRetryDelay) * 1_000);
    }
    function noteOutage(message: string | undefined) {
      if (message === undefined && isTornDown) subscribed.delete(operation.key);
      else subscribed.set(operation.key, message);
      socket.outageChanged([...subscribed.values()].find((each) => each !== undefined));
    }
    /** Passes a result on, unless it has nothing but errors that may be over soon. */
    function receive(result: OperationResult) {
      const isOutage = retryDelayFor(result.error) !== undefined && !hasData(result);
      noteOutage(isOutage ? result.error?.graphQLErrors[0]?.message : undefined);
      if (!isOutage) next(result);
    }
    function start() {
      unsubscribe = socket.subscribe(payload, {
        next: ({ data = null, errors }) =>
          receive(makeResult(operation, { data, ...(errors && { errors }) })),
        error(problem) {
          // Otherwise the connection is lost, which the socket notes itself.
          const result = Array.isArray(problem)
            ? makeResult(operation, { data: null, errors: problem })
            : undefined;
          if (result) receive(result);
          const delay = result ? retryDelayFor(result.error) : retryDelay;
          if (delay !== undefined) restartAfter(delay);
        },
        complete: () => restartAfter(retryDelay),
      });
    }
    noteOutage(undefined);
    start();
    return () => {
      isTornDown = true;
      noteOutage(undefined);
      clearTimeout(timer);
      unsubscribe();
    };
  });
}

/** Whether at least one top-level field has a value. */
const hasData = ({ data }: OperationResult): boolean =>
  Object.entries(data ?? {}).some(([name, value]) => name !== '__typename' && value != null);

/** The delay before the next attempt, in seconds; undefined without an error, or for one that would come back at every attempt. */
function retryDelayFor(error: CombinedError | undefined): number | undefined {
  const delays = error?.graphQLErrors.map(({ extensions: { code, retryAfter } }) =>
    transientCodes.has(String(code)) ? Math.max(Number(retryAfter) || 0, retryDelay) : undefined,
  );
  return delays?.includes(undefined) ? undefined : delays && Math.max(...delays.map((delay) => delay ?? 0));
}

/** The text of a query as a subscription. */
export function subscriptionOf({ query }: Pick<Operation, 'query'>): string {
  const definitions = query.definitions.map((definition) =>
    definition.kind === 'OperationDefinition' ? { ...definition, operation: 'subscription' } : definition,
  );
  // Only the keyword at the beginning differs, so the type holds.
  return stringifyDocument({ ...query, definitions } as typeof query);
}
