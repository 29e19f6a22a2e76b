/** A client of GraphQL over SSE, distinct connections mode: one request, one stream of results. */

import { expect } from 'vitest';
import type { TestGateway } from './gateway.ts';

export interface Events {
  readonly response: Response;
  /** The data of the next result. Fails if the stream ends instead, or the result has errors. */
  // biome-ignore lint/suspicious/noExplicitAny: a test names the shape of its own subscription where it reads it.
  next(): Promise<any>;
  /** The next result, with its errors. */
  // biome-ignore lint/suspicious/noExplicitAny: as for `next`.
  nextResult(): Promise<{ data?: any; errors?: any }>;
  /** Reads to the end of the stream. @returns the types of the remaining events, with `complete` if it ended in order. */
  rest(): Promise<string[]>;
  /** Closes the stream from the client's side. */
  leave(): void;
}

export interface SubscribeOptions {
  readonly variables?: Record<string, unknown>;
  readonly method?: 'GET' | 'POST';
  readonly accept?: string;
}

export async function subscribe(
  gateway: TestGateway,
  token: string | undefined,
  query: string,
  { variables = {}, method = 'POST', accept = 'text/event-stream' }: SubscribeOptions = {},
): Promise<Events> {
  const leaving = new AbortController();
  const headers = {
    Accept: accept,
    'Content-Type': 'application/json',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  };
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  const response = await fetch(`${gateway.url}/graphql${method === 'GET' ? `?${parameters}` : ''}`, {
    method,
    headers,
    signal: leaving.signal,
    ...(method === 'POST' && { body: JSON.stringify({ query, variables }) }),
  });
  const events = eventsOf(response);
  async function nextResult() {
    const { value, done } = await events.next();
    if (done) throw new Error('the stream has ended');
    expect(value.type).toBe('next');
    return JSON.parse(value.data);
  }
  return {
    response,
    nextResult,
    async next() {
      const { data, errors } = await nextResult();
      expect(errors).toBeUndefined();
      return data;
    },
    async rest() {
      const left: string[] = [];
      for await (const { type } of events) left.push(type);
      return left;
    },
    leave: () => leaving.abort(),
  };
}

/** The events of a stream (HTML, section 9.2.6), without comments such as pings. */
async function* eventsOf(response: Response): AsyncGenerator<{ type: string; data: string }> {
  for await (const block of blocksIn(response)) {
    const type = /^event: (.*)$/m.exec(block)?.[1];
    if (type !== undefined) yield { type, data: /^data:(.*)$/m.exec(block)?.[1] ?? '' };
  }
}

/** The events and comments of a stream, each as soon as it is complete. */
export async function* blocksIn({ body }: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body ?? []) {
    text += decoder.decode(piece, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    yield* blocks;
  }
}
