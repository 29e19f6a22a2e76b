/**
 * GraphQL Yoga, which sends results as event streams (GraphQL over SSE, distinct connections mode): the result of a query or mutation, and
 * the results of a subscription as they come. It executes nothing, since `execution.ts` executes the operations of all transports. It is
 * loaded when the first client asks for an event stream.
 *
 * May be replaced by a stream of our own beside that in `transports/streams.ts`.
 */

import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Plugin } from 'graphql-yoga';
import { OperationFailed } from './transports/endings.ts';

/** The media type of server-sent events. */
export const eventStream = 'text/event-stream';

interface Context {
  readonly results: AsyncIterable<object>;
}

/** The request was read before, and its results are made elsewhere. */
const resultsOfContext: Plugin<Context, Context> = {
  onRequestParse: ({ setRequestParser }) => setRequestParser(() => ({ query: '' })),
  onParams: ({ setParamsHandler, context }) => setParamsHandler(() => context.results),
};

async function startYoga() {
  const { createYoga, mapAsyncIterator } = await import('graphql-yoga');
  const yoga = createYoga<Context>({
    // The pipeline does this for all media types.
    ...{ cors: false, graphiql: false, landingPage: false, logging: false, maskedErrors: false },
    // Those that Yoga would bring along do not end when their reader cancels them.
    fetchAPI: { Response, ReadableStream },
    plugins: [resultsOfContext],
  });

  /** The body of a response that sends results, given as their JSON texts, and the signal to break off. */
  return async (texts: AsyncIterator<string>) => {
    const broken = new AbortController();
    const results = mapAsyncIterator(texts, withText, (error: unknown) => {
      const last = lastText(error);
      if (last !== undefined) return withText(last);
      // An error of the results themselves would leave Yoga's heartbeat running, which keeps the process alive.
      broken.abort(error);
      return new Promise<never>(() => {});
    });
    const request = new Request('http://gateway/graphql', { headers: { accept: eventStream } });
    const { body } = await yoga.fetch(request, { results });
    // Yoga gives each event stream a body. It is of the same class, whose types of the DOM and of Node differ.
    return { stream: body as NodeReadableStream<Uint8Array>, signal: broken.signal };
  };
}

/** A result whose text Yoga need not make. */
const withText = (text: string) => ({ stringify: () => text });

/** The last result of a client whose token has ended. Undefined for streams that break off, after which clients open them again. */
function lastText(error: unknown): string | undefined {
  const errors = error instanceof OperationFailed ? error.errors : [];
  return errors[0]?.extensions?.code === 'UNAUTHENTICATED' ? JSON.stringify({ errors }) : undefined;
}

let loading: ReturnType<typeof startYoga> | undefined;

/** Loads Yoga. Await it before anything is executed whose results Yoga is to send: otherwise a failure would hide them. */
export function loadYoga(): ReturnType<typeof startYoga> {
  loading ??= startYoga().catch((error: unknown) => {
    // The next call tries again.
    loading = undefined;
    throw error;
  });
  return loading;
}
