/** Writes the results of a subscription as the body of a response, in the media type that the client asks for. */

import type { GraphQLFormattedError } from 'graphql';
import { type ErrorCode, messages, unauthorizedMessage } from '../../errors.ts';
import { acceptedOf } from '../../http/request.ts';

/** How a media type frames results. */
export interface Framing {
  readonly headers: Readonly<Record<string, string>>;
  /** The text before the first result. Some browsers hand a response to a page only once its body has begun. */
  readonly opening: string;
  /** @param text the JSON text of a result. */
  result(text: string): string;
  /** The text that is sent while there are no results: it shows both sides that the connection is alive. */
  readonly heartbeat: string;
  /**
   * The text after the last result.
   * @param ending why there are no more results; undefined if they ended in order.
   * @returns undefined if the stream has to break off instead.
   */
  closing(ending: Ending | undefined): string | undefined;
}

/** Why results ended although the client did not want them to. */
export type Ending = keyof typeof endings;

const endings = {
  revoked: { message: unauthorizedMessage('invalid'), code: 'UNAUTHENTICATED' },
  expired: { message: unauthorizedMessage('expired'), code: 'UNAUTHENTICATED' },
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
  closing(ending) {
    // Clients treat a stream that breaks off as an error, and open it again.
    if (ending === 'failed' || ending === 'closing') return undefined;
    const last = ending ? nextEvent(JSON.stringify({ errors: errorsOf(ending) })) : '';
    return `${last}event: complete\ndata:\n\n`;
  },
};

const boundary = 'graphql';

/** A part, followed by the boundary: a reader knows by the boundary that the part is complete. */
const part = (text: string) => `\r\nContent-Type: application/json\r\n\r\n${text}\r\n--${boundary}`;

/** Apollo's multipart protocol for subscriptions over HTTP. Its clients treat errors beside the payload as errors of the transport. */
export const multipart: Framing = {
  headers: {
    'Content-Type': `multipart/mixed;boundary="${boundary}";subscriptionSpec=1.0`,
    'Cache-Control': 'no-cache',
    Connection: 'keep-alive',
  },
  opening: `\r\n--${boundary}`,
  result: (text) => part(`{"payload":${text}}`),
  heartbeat: part('{}'),
  closing: (ending) =>
    `${ending ? part(JSON.stringify({ payload: null, errors: errorsOf(ending) })) : ''}--\r\n`,
};

/** Each result as a chunk of the stream, for WebSockets, which have heartbeats and an end of their own. */
export const plain: Framing = {
  headers: {},
  opening: '',
  result: (text) => text,
  heartbeat: '',
  closing: (ending) => (ending ? undefined : ''),
};

/** The errors that end the results, though nothing is wrong with the operation. */
export function errorsOf(ending: Ending): readonly GraphQLFormattedError[] {
  const { message, code } = endings[ending];
  return [{ message, extensions: { code } }];
}

/** The error of an operation whose client gets these errors instead of a result. */
export class OperationFailed extends Error {
  override name = 'OperationFailed';
  readonly errors: readonly GraphQLFormattedError[];

  constructor(errors: readonly GraphQLFormattedError[]) {
    super(errors[0]?.message);
    this.errors = errors;
  }
}

/** The framing that a client prefers, the first in `Accept` among equals; undefined if it accepts none. */
export function framingFor(accept = ''): Framing | undefined {
  const mayBeMultipart = /\bsubscriptionSpec="?1\.0/i.test(accept);
  const [type] = acceptedOf(['text/event-stream', mayBeMultipart ? 'multipart/mixed' : ''], accept);
  if (type === undefined) return undefined;
  return type === 'text/event-stream' ? serverSentEvents : multipart;
}

/** The results of a subscription, as their JSON texts. */
export interface Results {
  /** The next result, or why there is none; undefined if they ended in order. */
  next(): Promise<IteratorResult<string, Ending | undefined>>;
  /** Ends them at once: a pending call of `next` settles as well. */
  stop(): void;
}

interface StreamOptions {
  readonly framing: Framing;
  /** In milliseconds. */
  readonly heartbeat: number;
  /** Called with each error that is hidden from the client. */
  report(error: unknown): void;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

/**
 * The results as the body of a response. The next result is made when the client has read the one before. A stream that has to
 * break off does so with an `OperationFailed`.
 */
export function streamOf(
  results: Results,
  { framing, heartbeat, report, closing }: StreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let beat: NodeJS.Timeout | undefined;
  const cleanUp = () => {
    clearInterval(beat);
    closing.removeEventListener('abort', results.stop);
  };

  return new ReadableStream<Uint8Array>({
    start(controller) {
      // A WebSocket needs no opening and no heartbeat, and closes by itself.
      if (framing === plain) return;
      controller.enqueue(encoder.encode(framing.opening));
      beat = setInterval(() => {
        // A client that has not read what was sent needs no heartbeat.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(framing.heartbeat));
      }, heartbeat);
      closing.addEventListener('abort', results.stop);
      if (closing.aborted) results.stop();
    },
    async pull(controller) {
      let ending: Ending | undefined;
      try {
        const step = await results.next();
        if (!step.done) return controller.enqueue(encoder.encode(framing.result(step.value)));
        ending = closing.aborted && framing !== plain ? 'closing' : step.value;
      } catch (error) {
        report(error);
        ending = 'failed';
      }
      cleanUp();
      const last = framing.closing(ending);
      if (last === undefined) return controller.error(new OperationFailed(errorsOf(ending ?? 'failed')));
      if (last !== '') controller.enqueue(encoder.encode(last));
      controller.close();
    },
    cancel() {
      cleanUp();
      results.stop();
    },
  });
}
