/** Writes the results of a subscription as the body of a response, in the media type that the client asks for. */

import type { GraphQLFormattedError } from 'graphql';
import { type ErrorCode, messages, unauthorizedMessage } from '../../errors.ts';
import { readAccept } from '../../http/accept.ts';
import type { LiveResult } from '../readers.ts';
import { OperationFailed } from './operations.ts';

/** How a media type frames results. */
export interface Framing {
  readonly headers: Readonly<Record<string, string>>;
  /** The text before the first result. Some browsers hand a response to a page only once its body has begun. */
  readonly opening: string;
  /** @param text the JSON text of a result. */
  result(text: string): string;
  /** The text that is sent while there are no results, so that neither side takes the connection for dead. */
  readonly heartbeat: string;
  /**
   * The text after the last result.
   * @param reason why there are no more results; undefined if they ended in order.
   * @returns undefined if the stream has to break off instead.
   */
  closing(reason: Reason | undefined): string | undefined;
}

/** Why results ended although the client did not want them to. */
export type Reason = keyof typeof endings;

const endings = {
  revoked: { message: unauthorizedMessage('invalid'), code: 'UNAUTHENTICATED' },
  failed: { message: messages.internal, code: 'INTERNAL_SERVER_ERROR' },
  closing: { message: messages.closing, code: 'SERVICE_UNAVAILABLE' },
} satisfies Record<string, { message: string; code: ErrorCode }>;

const nextEvent = (text: string) => `event: next\ndata: ${text}\n\n`;

/** Server-sent events, as the distinct connections mode of the GraphQL over SSE protocol has them. */
export const serverSentEvents: Framing = {
  headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', Connection: 'keep-alive' },
  opening: ':\n\n',
  result: nextEvent,
  heartbeat: ':\n\n',
  closing(reason) {
    // Clients take a stream that breaks off for an error, and open it again.
    if (reason === 'failed' || reason === 'closing') return undefined;
    const complete = 'event: complete\ndata:\n\n';
    return reason === 'revoked'
      ? nextEvent(JSON.stringify({ errors: endingErrors(reason) })) + complete
      : complete;
  },
};

const boundary = 'graphql';

/** A part, followed by the boundary: a reader knows by the boundary that the part is complete. */
const part = (text: string) => `\r\nContent-Type: application/json\r\n\r\n${text}\r\n--${boundary}`;

/** Apollo's multipart protocol for subscriptions over HTTP. */
export const multipart: Framing = {
  headers: {
    'Content-Type': `multipart/mixed;boundary="${boundary}";subscriptionSpec=1.0`,
    'Cache-Control': 'no-cache',
    Connection: 'keep-alive',
  },
  opening: `\r\n--${boundary}`,
  result: (text) => part(`{"payload":${text}}`),
  heartbeat: part('{}'),
  closing: (reason) =>
    `${reason === undefined ? '' : part(JSON.stringify({ payload: null, errors: endingErrors(reason) }))}--\r\n`,
};

/** The errors that end the results, though nothing is wrong with the operation. */
export function endingErrors(reason: Reason): readonly GraphQLFormattedError[] {
  const { message, code } = endings[reason];
  return [{ message, extensions: { code } }];
}

/** Each result as a chunk of the stream, for WebSockets, which have heartbeats and an end of their own. */
export const plain: Framing = {
  headers: {},
  opening: '',
  result: (text) => text,
  heartbeat: '',
  closing: (reason) => (reason === undefined ? '' : undefined),
};

/** The framing that a client prefers, the first in `Accept` among equals; undefined if it accepts none. */
export function framingFor(accept: string | undefined): Framing | undefined {
  const wanted = readAccept(accept)
    .filter(({ weight }) => weight > 0)
    .sort((one, other) => other.weight - one.weight);
  for (const { type, parameters } of wanted) {
    if (type === 'text/event-stream') return serverSentEvents;
    if (type === 'multipart/mixed' && parameters.includes('subscriptionspec=1.0')) return multipart;
  }
  return wanted.some(({ type }) => type === '*/*' || type === 'text/*') ? serverSentEvents : undefined;
}

interface StreamOptions {
  readonly framing: Framing;
  /** In milliseconds. */
  readonly heartbeat: number;
  /** Called when there are no more results. Settles with the reason, or with undefined if they ended in order. */
  reason(): Promise<Reason | undefined>;
  /** Is told of errors that are hidden from the client. */
  report(error: unknown): void;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

/**
 * The results as the body of a response. The next result is made when the client has read the one before. A stream that has to
 * break off does so with an `OperationFailed`.
 */
export function streamOf(
  results: AsyncIterable<Pick<LiveResult, 'stringify'>>,
  { framing, heartbeat, reason, report, closing }: StreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = results[Symbol.asyncIterator]();
  let beat: NodeJS.Timeout | undefined;
  let isClosing = false;

  // Nobody waits for the next result any more, nor wants to know of its failure.
  const stop = () => void iterator.return?.()?.catch(() => {});
  const close = () => {
    isClosing = true;
    stop();
  };
  const cleanUp = () => {
    clearInterval(beat);
    closing.removeEventListener('abort', close);
  };

  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (framing === plain) return;
      controller.enqueue(encoder.encode(framing.opening));
      beat = setInterval(() => {
        // A client that has not read what was sent needs no heartbeat.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(framing.heartbeat));
      }, heartbeat);
      closing.addEventListener('abort', close);
      if (closing.aborted) close();
    },
    async pull(controller) {
      let ending: Reason | undefined;
      try {
        const step = await iterator.next();
        if (!step.done) return controller.enqueue(encoder.encode(framing.result(step.value.stringify())));
        ending = isClosing ? 'closing' : await reason();
      } catch (error) {
        report(error);
        ending = 'failed';
      }
      cleanUp();
      const last = framing.closing(ending);
      if (last === undefined) return controller.error(new OperationFailed(endingErrors(ending ?? 'failed')));
      if (last !== '') controller.enqueue(encoder.encode(last));
      controller.close();
    },
    cancel() {
      cleanUp();
      stop();
    },
  });
}
