/** How the results of a subscription are written, in the media types that a client may ask for. */

import { messages, unauthenticated } from '../../errors.ts';
import { readAccept } from '../../http/accept.ts';
import type { LiveResult } from '../readers.ts';

/** How results become the pieces of a body. */
export interface Framing {
  readonly headers: Readonly<Record<string, string>>;
  /** What comes first: some browsers hand over no response before its body has begun. */
  readonly opening: string;
  /** @param text the JSON text of a result. */
  result(text: string): string;
  /** What is sent while nothing else is, so that neither side takes the other for gone. */
  readonly heartbeat: string;
  /**
   * @param reason why there are no more results, if that is not in order.
   * @returns undefined where only a broken stream can say that.
   */
  closing(reason: Reason | undefined): string | undefined;
}

/** Why results end that a client would want more of. */
export type Reason = 'revoked' | 'failed';

/** The error of a stream that breaks off. */
export class BrokenOff extends Error {
  override name = 'BrokenOff';
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

/** A part, and the boundary behind it: a reader knows that a part is whole by what follows. */
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

/** Each result as a piece of its own, for a transport that writes them itself. */
export const plain: Framing = {
  headers: {},
  opening: '',
  result: (text) => text,
  heartbeat: '',
  closing: (reason) => (reason === undefined ? '' : undefined),
};

/** The framing that a client accepts; undefined for one that accepts none. Of equals, the one that is named first. */
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

export interface StreamOptions {
  readonly framing: Framing;
  /** In milliseconds. */
  readonly heartbeat: number;
  /** Asked when there are no more results: why, if that is not in order. */
  reason(): Promise<Reason | undefined>;
  /** Told of an error that the client does not get to see. */
  report(error: unknown): void;
}

/** The results as the body of a response, made no faster than it is read. */
export function streamOf(
  results: AsyncIterable<Pick<LiveResult, 'stringify'>>,
  { framing, heartbeat, reason, report }: StreamOptions,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = results[Symbol.asyncIterator]();
  let beat: NodeJS.Timeout | undefined;

  /** The next piece; of the last, undefined for none and a reason for a stream that breaks off. */
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
        // Whoever has not read what there is needs no sign of life.
        if ((controller.desiredSize ?? 0) > 0) write(framing.heartbeat);
      }, heartbeat);
    },
    async pull(controller) {
      const piece = await next();
      if ('text' in piece) return controller.enqueue(encoder.encode(piece.text));
      clearInterval(beat);
      if (piece.last === undefined) return controller.error(new BrokenOff(piece.reason ?? 'failed'));
      if (piece.last !== '') controller.enqueue(encoder.encode(piece.last));
      controller.close();
    },
    cancel() {
      clearInterval(beat);
      // A result that never comes is not waited for, and one that fails now is nobody's.
      iterator.return?.()?.catch(() => {});
    },
  });
}
