/**
 * Streams of results, besides what Yoga does for event streams: Apollo's multipart protocol for subscriptions, which Yoga does not know,
 * and streams that end before their subscription does.
 */

import { ReadableStream } from 'node:stream/web';
import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, mapAsyncIterator } from 'graphql-yoga';
import { clientErrorOf } from '../../errors.ts';
import type { GatewayPlugin, RequestContext } from '../context.ts';
import { jsonType, multipart, responseOf, textOf, withText } from '../overHttp.ts';
import { OperationFailed } from '../transports/endings.ts';
import { noteErrors } from './errors.ts';

export const useStreams = (): GatewayPlugin => ({
  onResultProcess({ result, setResult, setResultProcessor, serverContext }) {
    const { accepted, broken } = serverContext;
    // Batches do not come here.
    if (Array.isArray(result) || (accepted.whole && !isAsyncIterable(result))) return;
    const write = (each: ExecutionResult) => written(each, serverContext);
    const results = isAsyncIterable(result) ? mapAsyncIterator(result, write) : write(result);
    if (accepted.stream === multipart) setResultProcessor(() => multipartResponse(results), multipart);
    else setResult(isAsyncIterable(results) ? endingInOrder(results, broken) : results);
  },
});

/** The result with its text, or an error in place of what another plugin has put into it and is no JSON. */
function written(result: ExecutionResult, context: RequestContext): ExecutionResult {
  try {
    return withText({ ...result }, textOf(result));
  } catch (error) {
    const failed = { errors: [clientErrorOf(error)] };
    noteErrors(failed, context);
    return failed;
  }
}

/**
 * The results of an event stream, which never fail: Yoga would go on with the heartbeat of a stream that has. The client of a token that
 * has ended gets a last result that says so. Any other stream breaks off, after which clients open it again.
 */
function endingInOrder(results: AsyncIterable<ExecutionResult>, broken: RequestContext['broken']) {
  return mapAsyncIterator(
    results,
    (result) => result,
    (error: unknown) => {
      const errors = error instanceof OperationFailed ? error.errors : [];
      if (errors[0]?.extensions?.code !== 'UNAUTHENTICATED') broken?.abort(error);
      return { errors };
    },
  );
}

/** How often, in milliseconds, a stream without results sends a heartbeat, which shows both sides that the connection is alive. */
const heartbeat = 12_000;

const boundary = 'graphql';

/** The text before the first part. Some browsers hand a response to a page only once its body has begun. */
const opening = `\r\n--${boundary}`;

/** A part, followed by the boundary: a reader knows by the boundary that the part is complete. */
const part = (text: string) => `\r\nContent-Type: application/json\r\n\r\n${text}\r\n--${boundary}`;

const resultPart = (text: string) => part(`{"payload":${text}}`);
const closing = '--\r\n';

const type = { 'Content-Type': `multipart/mixed;boundary="${boundary}";subscriptionSpec=1.0` };

function multipartResponse(result: ExecutionResult | AsyncIterable<ExecutionResult>): Response {
  const results = isAsyncIterable(result) ? result : only(result);
  // The types of the DOM and of Node differ for the same class.
  const body = multipartOf(results) as unknown as BodyInit;
  const { status, headers: { 'Retry-After': again } = {} } = isAsyncIterable(result)
    ? {}
    : responseOf(result, jsonType);
  const headers = { ...type, ...(again !== undefined && { 'Retry-After': String(again) }) };
  return new Response(body, { status: status ?? 200, headers });
}

async function* only(result: ExecutionResult) {
  yield result;
}

/**
 * Apollo's multipart protocol for subscriptions over HTTP. The next result is made when the client has read the one before. Clients
 * treat errors beside the payload as errors of the transport.
 */
function multipartOf(results: AsyncIterable<ExecutionResult>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const texts = results[Symbol.asyncIterator]();
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
        if (!done) return controller.enqueue(encoder.encode(resultPart(textOf(value))));
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
