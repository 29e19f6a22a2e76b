/** Runs subscriptions: the operation again for each event, a viewer's one after the other. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import { codeForClient } from '../errors.ts';
import type { Context } from '../schema/context.ts';
import { createTurns, type Turns } from './turns.ts';

/** In milliseconds. */
const longestRest = 1_000;

export type Subscribe = (
  args: ExecutionArgs,
) => Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;

/**
 * The subscriptions of a viewer take turns, and rest as long as they took: whoever has many open waits for themselves.
 */
export function createSubscribe(): Subscribe {
  const inTurn = createTurns<number>((took) => sleep(Math.min(took, longestRest)));
  return (args) => subscribeInTurns(args, inTurn);
}

/**
 * As `subscribe` of graphql-js, in turns. An event whose operation failed for a reason that is hidden from clients comes
 * again after a while: the reader would otherwise have the failure for the state of things until the next change. One
 * that failed for the request's own sake would do so again and again, and is the last.
 * @param args the context is one of the schema's: without a viewer no document is a subscription.
 */
async function subscribeInTurns(
  args: ExecutionArgs,
  inTurn: Turns<number>,
): Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult> {
  const events = await createSourceEventStream(args);
  if (!isAsyncIterable<unknown>(events)) return events;
  const { viewer, changes } = args.contextValue as Context;
  const iterator = events[Symbol.asyncIterator]();
  let hasLeft = false;
  let isOver = false;
  const end = { done: true, value: undefined } as const;
  const results: AsyncIterableIterator<ExecutionResult> = {
    async next() {
      const step = isOver ? ((await iterator.return?.()) ?? end) : await iterator.next();
      if (step.done) return end;
      const value = await inTurn(viewer.id, async () =>
        hasLeft ? undefined : execute({ ...args, rootValue: step.value }),
      );
      if (value === undefined) return end;
      const codes = value.errors?.map(codeForClient) ?? [];
      isOver = codes.includes('BAD_USER_INPUT');
      changes.resolved(codes.includes(undefined));
      return { done: false, value };
    },
    async return() {
      hasLeft = true;
      await iterator.return?.();
      return end;
    },
    [Symbol.asyncIterator]: () => results,
  };
  return results;
}
