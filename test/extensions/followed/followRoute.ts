/** A client that follows a route of the REST API. */

import { blocksIn } from '../../support/events.ts';
import type { TestGateway } from '../../support/gateway.ts';

export interface RouteEvent {
  /** The entity tag; empty for an error. */
  readonly id: string;
  /** The envelope as it was sent. */
  readonly data: string;
}

export interface FollowedRoute {
  readonly response: Response;
  /** The next event. Fails if the stream ends or breaks off instead. */
  next(): Promise<RouteEvent>;
  /** The remaining events. Fails if the stream breaks off. */
  rest(): Promise<RouteEvent[]>;
  leave(): void;
}

/** @param path below `/api/v1`. @param headers further headers. */
export async function followRoute(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  path: string,
  headers: Record<string, string> = {},
): Promise<FollowedRoute> {
  const leaving = new AbortController();
  const response = await fetch(`${url}/api/v1${path}`, {
    headers: {
      Accept: 'text/event-stream',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
    signal: leaving.signal,
  });
  const events = eventsOf(response);
  return {
    response,
    async next() {
      const { value, done } = await events.next();
      if (done) throw new Error('the stream has ended');
      return value;
    },
    async rest() {
      const left: RouteEvent[] = [];
      for await (const event of events) left.push(event);
      return left;
    },
    leave: () => leaving.abort(),
  };
}

/** The events of a stream, without comments such as heartbeats. */
async function* eventsOf(response: Response): AsyncGenerator<RouteEvent> {
  for await (const block of blocksIn(response)) {
    const [, id, data] = /^id: (.*)\ndata: (.*)$/.exec(block) ?? [];
    if (id !== undefined && data !== undefined) yield { id, data };
    else if (block !== ':') throw new Error(`this is no event: ${block}`);
  }
}
