/** Streams of results: event streams, which Yoga writes, Apollo's multipart streams, and plain ones for WebSockets. */

import { ReadableStream } from 'node:stream/web';
import { acceptedOf } from '../../http/request.ts';
import type { StreamedResponse } from '../../http/response.ts';
import { eventStream, loadYoga } from '../yoga.ts';
import { OperationFailed } from './endings.ts';

const multipart = 'multipart/mixed';

/** Each result as a piece of the stream, for WebSockets, which have heartbeats and an end of their own. */
export const plain = 'plain';

export type StreamType = typeof eventStream | typeof multipart | typeof plain;

/** The type of stream that a client prefers, the first in `Accept` among equals; undefined if it accepts none. */
export function streamTypeFor(accept = ''): StreamType | undefined {
  const mayBeMultipart = /\bsubscriptionSpec="?1\.0/i.test(accept);
  const [type] = acceptedOf<StreamType>(mayBeMultipart ? [eventStream, multipart] : [eventStream], accept);
  return type;
}

/**
 * The body of a response that has results, given as JSON texts, and the signal to break off. `return` of the results is called if the
 * client leaves.
 */
export async function streamOf(
  type: StreamType,
  texts: AsyncIterator<string>,
): Promise<Pick<StreamedResponse, 'stream' | 'signal'>> {
  if (type === eventStream) return (await loadYoga())(texts);
  if (type === multipart) return { stream: multipartOf(texts) };
  return { stream: ReadableStream.from({ [Symbol.asyncIterator]: () => texts }) };
}

/** How often, in milliseconds, a stream without results sends a heartbeat, which shows both sides that the connection is alive. */
const heartbeat = 12_000;

const boundary = 'graphql';

/** The value of `Content-Type`. */
export const contentTypeOf = (type: StreamType): string =>
  type === multipart ? `multipart/mixed;boundary="${boundary}";subscriptionSpec=1.0` : type;

/** The text before the first part. Some browsers hand a response to a page only once its body has begun. */
const opening = `\r\n--${boundary}`;

/** A part, followed by the boundary: a reader knows by the boundary that the part is complete. */
const part = (text: string) => `\r\nContent-Type: application/json\r\n\r\n${text}\r\n--${boundary}`;

const resultPart = (text: string) => part(`{"payload":${text}}`);
const closing = '--\r\n';

/**
 * Apollo's multipart protocol for subscriptions over HTTP. The next result is made when the client has read the one before. Clients
 * treat errors beside the payload as errors of the transport.
 */
function multipartOf(texts: AsyncIterator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let beat: NodeJS.Timeout | undefined;

  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(opening));
      beat = setInterval(() => {
        // A client that has not read what was sent needs no heartbeat.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(part('{}')));
      }, heartbeat);
    },
    async pull(controller) {
      let last = closing;
      try {
        const { done, value } = await texts.next();
        if (!done) return controller.enqueue(encoder.encode(resultPart(value)));
      } catch (error) {
        if (!(error instanceof OperationFailed)) throw error;
        last = `${part(JSON.stringify({ payload: null, errors: error.errors }))}${closing}`;
      }
      clearInterval(beat);
      controller.enqueue(encoder.encode(last));
      controller.close();
    },
    cancel() {
      clearInterval(beat);
      void texts.return?.();
    },
  });
}
