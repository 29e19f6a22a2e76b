/** Writes the results of a subscription as the body of a response, in the media type that the client asks for. */

import { messages, unauthenticated } from '../../errors.ts';
import { readAccept } from '../../http/accept.ts';
import type { LiveResult } from '../readers.ts';

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
export type Reason = 'revoked' | 'failed';

/** The error of a stream that breaks off. */
export class ResultsAborted extends Error {
  override name = 'ResultsAborted';
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(`the results have ended: ${reason}`);
    this.reason = reason;
  }
}

const nextEvent = (text: string) => `event: next\ndata: ${text}\n\n`;

/** Server-sent events, as the distinct connections mode of the GraphQL over SSE protocol has them. */
export const serverSentEvents: Framing = {
  headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', Connection: 'keep-alive' },
  opening: ':\n\n',
  result: nextEvent,
  heartbeat: ':\n\n',
  closing(reason) {
    // A stream that breaks off is opened again by its client, which is right after a failure.
    if (reason === 'failed') return undefined;
    const complete = 'event: complete\ndata:\n\n';
    return reason === 'revoked' ? nextEvent(JSON.stringify(endingErrors(reason))) + complete : complete;
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
    `${reason === undefined ? '' : part(JSON.stringify({ payload: null, ...endingErrors(reason) }))}--\r\n`,
};

/** The errors that end the results, though nothing is wrong with the operation. */
function endingErrors(reason: Reason) {
  const { message, extensions } =
    reason === 'revoked'
      ? unauthenticated('invalid')
      : { message: messages.internal, extensions: { code: 'INTERNAL_SERVER_ERROR' } };
  return { errors: [{ message, extensions: { code: extensions.code } }] };
}

/**
 * Each result as a chunk of the stream, for WebSockets and event streams of many operations, which frame it
 * themselves.
 */
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
}

/** The results as the body of a response. The next result is made when the client has read the one before. */
export function streamOf(
  results: AsyncIterable<Pick<LiveResult, 'stringify'>>,
  { framing, heartbeat, reason, report }: StreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = results[Symbol.asyncIterator]();
  let beat: NodeJS.Timeout | undefined;

  /** The next text, or the last one of the stream: undefined if the stream has to break off, for the reason beside it. */
  async function next(): Promise<{ text: string } | { last: string | undefined; reason?: Reason }> {
    let ending: Reason | undefined;
    try {
      const step = await iterator.next();
      if (!step.done) return { text: framing.result(step.value.stringify()) };
      ending = await reason();
    } catch (error) {
      report(error);
      ending = 'failed';
    }
    return { last: framing.closing(ending), ...(ending !== undefined && { reason: ending }) };
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => text !== '' && controller.enqueue(encoder.encode(text));
      write(framing.opening);
      if (framing.heartbeat === '') return;
      beat = setInterval(() => {
        // A client that has not read what was sent needs no heartbeat.
        if ((controller.desiredSize ?? 0) > 0) write(framing.heartbeat);
      }, heartbeat);
    },
    async pull(controller) {
      const piece = await next();
      if ('text' in piece) return controller.enqueue(encoder.encode(piece.text));
      clearInterval(beat);
      if (piece.last === undefined) return controller.error(new ResultsAborted(piece.reason ?? 'failed'));
      if (piece.last !== '') controller.enqueue(encoder.encode(piece.last));
      controller.close();
    },
    cancel() {
      clearInterval(beat);
      // Nobody waits for the next result any more, nor wants to know of its failure.
      iterator.return?.()?.catch(() => {});
    },
  });
}
