/**
 * Streams of results, besides what Yoga does for event streams: Apollo's multipart protocol for subscriptions, which Yoga does not know,
 * and streams that end before their subscription does.
 */

import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, mapAsyncIterator } from 'graphql-yoga';
import { clientErrorOf } from '../../errors.ts';
import { createTextStream } from '../../http/textStream.ts';
import { OperationFailed } from '../../schema/liveReads.ts';
import type { GatewayPlugin, RequestContext } from '../context.ts';
import { initOf, multipart, textOf, withText } from '../overHttp.ts';
import { noteErrors } from './operation.ts';

export const useStreams = (): GatewayPlugin => ({
  onResultProcess({ result, setResult, setResultProcessor, serverContext }) {
    const { accepted, broken } = serverContext;
    // Yoga's type has lists of results, for batches, which are not run.
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

const boundary = 'graphql';

/** The text before the first part. */
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
  const { status, headers } = isAsyncIterable(result) ? { status: 200, headers: {} } : initOf(result);
  return new Response(body, { status, headers: { ...headers, ...type } });
}

async function* only(result: ExecutionResult) {
  yield result;
}

/** Clients of Apollo's multipart protocol treat errors beside the payload as errors of the transport. */
const multipartOf = (results: AsyncIterable<ExecutionResult>) =>
  createTextStream(results[Symbol.asyncIterator](), {
    opening,
    heartbeat: part('{}'),
    write: (result) => resultPart(textOf(result)),
    end(error) {
      if (error === undefined) return closing;
      if (!(error instanceof OperationFailed)) throw error;
      return `${part(JSON.stringify({ payload: null, errors: error.errors }))}${closing}`;
    },
  });
