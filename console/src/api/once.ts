/**
 * Queries whose results are used once and not shown, such as those of an export. They bypass the cache, which would hold on to
 * all of the results, and go over HTTP, without live updates.
 */

import { type Exchange, fetchExchange, type Operation } from '@urql/core';
import { filter, merge, never, pipe, share } from 'wonka';

/** The context of such a query. */
export const once = { once: true, requestPolicy: 'network-only' } as const;

const isOnce = ({ context }: Operation): boolean => context.once === true;

/** An exchange to stand before the cache: it sends such queries itself, and forwards all others. */
export const onceExchange: Exchange = (input) => {
  // It gets only queries, which it sends, so it has nothing to forward.
  const fetched = fetchExchange({ ...input, forward: () => never });
  return (operations$) => {
    const shared$ = pipe(operations$, share);
    return merge([
      pipe(shared$, filter(isOnce), fetched),
      pipe(
        shared$,
        filter((operation) => !isOnce(operation)),
        input.forward,
      ),
    ]);
  };
};
