/**
 * Reads what is used once and not shown: past the cache, which would keep all of it, and over HTTP, without being told of
 * changes.
 */

import { type Exchange, fetchExchange, type Operation } from '@urql/core';
import { filter, merge, never, pipe, share } from 'wonka';

/** The context of an operation whose result nobody keeps. */
export const once = { once: true, requestPolicy: 'network-only' } as const;

const isOnce = ({ context }: Operation): boolean => context.once === true;

/** Stands before the cache. */
export const onceExchange: Exchange = (input) => {
  // Whatever it gets is for it: nothing is left over to be handed on.
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
