/** A fake of the graphql-ws client without a WebSocket: the test decides which results arrive. */

import type { Client, Sink, SubscribePayload } from 'graphql-ws';

type Result = Parameters<Sink['next']>[0];

export interface FakeSubscription {
  readonly payload: SubscribePayload;
  isOver: boolean;
  next(result: Result): void;
  error(problem: unknown): void;
  complete(): void;
}

export function createFakeSocket() {
  const all: FakeSubscription[] = [];
  const subscribe: Client['subscribe'] = (payload, sink) => {
    const subscription: FakeSubscription = {
      payload,
      isOver: false,
      // What the gateway sends has no types.
      next: (result) => sink.next(result as Parameters<typeof sink.next>[0]),
      error: (problem) => sink.error(problem),
      complete: () => sink.complete(),
    };
    all.push(subscription);
    return () => {
      subscription.isOver = true;
      // The real client also completes a moment later.
      queueMicrotask(() => sink.complete());
    };
  };
  return {
    subscribe,
    all,
    /** The subscriptions that have not been ended. */
    open: () => all.filter(({ isOver }) => !isOver),
  };
}
