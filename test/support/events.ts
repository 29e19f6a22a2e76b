/** A client of GraphQL over SSE, distinct connections mode: one request, one stream of results. */

import { expect } from 'vitest';
import type { TestGateway } from './gateway.ts';

export type Events = Awaited<ReturnType<typeof subscribe>>;

export interface SubscribeOptions {
  readonly variables?: Record<string, unknown>;
  /** Only by POST. */
  readonly operationName?: string;
  readonly method?: 'GET' | 'POST';
  readonly accept?: string;
}

export async function subscribe(
  gateway: TestGateway,
  token: string | undefined,
  query: string,
  { variables = {}, operationName, method = 'POST', accept = 'text/event-stream' }: SubscribeOptions = {},
) {
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  const { response, next, rest, leave } = await openStream(
    `${gateway.url}/graphql${method === 'GET' ? `?${parameters}` : ''}`,
    {
      method,
      headers: {
        Accept: accept,
        'Content-Type': 'application/json',
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      ...(method === 'POST' && { body: JSON.stringify({ query, variables, operationName }) }),
    },
    eventOf,
  );
  /** The next result, with its errors. */
  async function nextResult() {
    const { type, data } = await next();
    expect(type).toBe('next');
    return JSON.parse(data);
  }
  return {
    response,
    leave,
    nextResult,
    /** The data of the next result. Fails if the stream ends instead, or the result has errors. */
    async next() {
      const { data, errors } = await nextResult();
      expect(errors).toBeUndefined();
      return data;
    },
    /** Reads to the end of the stream. @returns the types of the remaining events, with `complete` if it ended in order. */
    rest: async () => (await rest()).map(({ type }) => type),
  };
}

/** An event of a stream (HTML, section 9.2.6); undefined for a comment such as a ping. */
function eventOf(block: string) {
  const type = /^event: (.*)$/m.exec(block)?.[1];
  return type === undefined ? undefined : { type, data: /^data:(.*)$/m.exec(block)?.[1] ?? '' };
}

/** Requests an event stream. @param eventOf what a block of the stream stands for; undefined for none. */
export async function openStream<Event>(
  target: string,
  init: RequestInit,
  eventOf: (block: string) => Event | undefined,
) {
  const leaving = new AbortController();
  const response = await fetch(target, { ...init, signal: leaving.signal });
  async function* read(): AsyncGenerator<Event> {
    for await (const block of blocksIn(response)) {
      const event = eventOf(block);
      if (event !== undefined) yield event;
    }
  }
  const events = read();
  return {
    response,
    /** The next event. Fails if the stream ends or breaks off instead. */
    async next(): Promise<Event> {
      const { value, done } = await events.next();
      if (done) throw new Error('the stream has ended');
      return value;
    },
    /** The remaining events. Fails if the stream breaks off. */
    async rest(): Promise<Event[]> {
      const left: Event[] = [];
      for await (const event of events) left.push(event);
      return left;
    },
    /** Closes the stream from the client's side. */
    leave: () => leaving.abort(),
  };
}

/** The events and comments of a stream, each as soon as it is complete. */
async function* blocksIn({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body ?? []) {
    text += decoder.decode(piece, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    yield* blocks;
  }
}
