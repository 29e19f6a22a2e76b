/** Has the pipeline run an operation of a WebSocket, and gives its results to graphql-ws: one of a query, many of a subscription. */

import type { ExecutionResult, GraphQLFormattedError } from 'graphql';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../../http/response.ts';
import { OperationFailed } from './operations.ts';
import type { Connection } from './webSocket.ts';

type Results = AsyncGenerator<ExecutionResult, void, void>;

/** Begins an operation. @param id names it in the log. */
export type Run = (id: string) => {
  readonly exchange: Exchange;
  readonly response: Promise<HttpResponse | StreamedResponse>;
};

/**
 * The results of an operation. They end at once when graphql-ws stops them, which would then send a message for their id:
 * but the client may have given it to another operation by now. So a stopped operation leaves graphql-ws waiting.
 */
export function resultsOf(connection: Pick<Connection, 'nextId' | 'takeTurn'>, run: Run) {
  const stopping = new AbortController();
  const { signal } = stopping;
  const results = readResults(connection, run, signal);
  const never = new Promise<never>(() => {});
  const stoppable: AsyncIterableIterator<ExecutionResult> = {
    next: () => results.next().finally(() => (signal.aborted ? never : undefined)),
    async return() {
      stopping.abort();
      results.return().catch(() => {});
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => stoppable,
  };
  return stoppable;
}

/** @throws {OperationFailed} */
async function* readResults(
  { nextId, takeTurn }: Pick<Connection, 'nextId' | 'takeTurn'>,
  run: Run,
  stopped: AbortSignal,
): Results {
  const id = nextId();
  const endTurn = await takeTurn();
  try {
    if (stopped.aborted) return;
    const { exchange, response } = run(id);
    let hasBegun = false;
    // A stopped subscription is a success. The result of any other operation is read by nobody.
    stopped.addEventListener('abort', () => endExchange(exchange, hasBegun ? 200 : undefined));
    const given = await response;
    if ('stream' in given) {
      hasBegun = true;
      // A subscription lasts as long as the client wants, so nothing waits for its end.
      endTurn();
      yield* streamedResults(exchange, given, stopped);
    } else if (!stopped.aborted) yield wholeResult(exchange, given);
  } finally {
    endTurn();
  }
}

/** The result in the response to a query or mutation. */
function wholeResult(exchange: Exchange, response: HttpResponse): ExecutionResult {
  const { status, body } = response;
  exchange.operation ??= response.operation;
  exchange.errorCode = response.errorCode;
  endExchange(exchange, status);
  const result = JSON.parse(body.toString());
  if (status === 200) return result;
  throw new OperationFailed(withRetryAfter(result.errors, exchange, response));
}

/** The errors of a response. Each gets `retryAfter` from the `Retry-After` header, which a message does not have. */
function withRetryAfter(
  errors: readonly GraphQLFormattedError[],
  exchange: Exchange,
  { headers }: HttpResponse,
): readonly GraphQLFormattedError[] {
  const retryAfter = Number(headers['Retry-After'] ?? exchange.headers['Retry-After']);
  if (Number.isNaN(retryAfter)) return errors;
  return errors.map((error) => ({ ...error, extensions: { retryAfter, ...error.extensions } }));
}

/** The results of a subscription. The next one is made when graphql-ws has sent the one before. */
async function* streamedResults(
  exchange: Exchange,
  { stream, ended }: StreamedResponse,
  stopped: AbortSignal,
): Results {
  const reader = stream?.getReader();
  // A pending read of a cancelled stream ends at once.
  const cancel = () => void reader?.cancel().catch(() => {});
  if (stopped.aborted) cancel();
  stopped.addEventListener('abort', cancel);
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read())
      yield JSON.parse(Buffer.from(piece.value).toString());
  } finally {
    cancel();
    ended();
    endExchange(exchange, 200);
  }
}
