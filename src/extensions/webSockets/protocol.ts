/**
 * GraphQL over WebSocket: the server of graphql-ws, with the hooks by which the pipeline authenticates its clients and runs their
 * operations. `socket.ts` has the sockets.
 *
 * Promises: the protocol `graphql-transport-ws`; an operation is limited, cached, logged and measured like a POST; a socket ends
 * with its token. To replace it: use graphql-ws' adapter of another WebSocket server.
 */

import {
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLFormattedError,
  GraphQLSchema,
  parse,
} from 'graphql';
import { CloseCode, type ConnectionInitMessage, makeServer, type Server } from 'graphql-ws';
import { problemOf, type Viewer } from '../../auth/viewer.ts';
import { type TokenProblem, tokenProblems } from '../../errors.ts';
import type { Exchange } from '../../http/exchange.ts';
import { type HttpResponse, isResponse } from '../../http/response.ts';
import type { UserQuota } from '../../http/userQuota.ts';
import { errorsOf, OperationFailed } from '../../schema/liveReads.ts';
import { endExchange, type Operations } from './operations.ts';
import { closeCodes, type createLimitedSocket } from './socket.ts';

type GraphqlSocket = ReturnType<typeof createLimitedSocket>;

interface ProtocolOptions {
  readonly operations: Operations;
  /** How many sockets each user may have. */
  readonly connectionQuota: UserQuota;
}

/** How long, in milliseconds, the gateway waits for `connection_init`. */
const longestInit = 5_000;

type InitPayload = ConnectionInitMessage['payload'];

/**
 * graphql-ws looks into the document only to tell subscriptions from other operations, which here makes no difference: the
 * pipeline reads the client's own document.
 */
const anyOperation = { schema: new GraphQLSchema({}), document: parse('{ __typename }') };

/** graphql-ws' server, with its hooks. */
export function createProtocol(options: ProtocolOptions): Server<GraphqlSocket> {
  const { operations } = options;
  return makeServer<InitPayload, GraphqlSocket>({
    connectionInitWaitTimeout: longestInit,

    async onConnect({ connectionParams, extra: connection }) {
      const viewer = await admit(connection, connectionParams, options);
      if (!viewer) return false;
      connection.onClosed(operations.watchToken(viewer, (problem) => rejectToken(connection, problem)));
      return { requestId: connection.opening.id };
    },

    onSubscribe: () => anyOperation,
    // The results come from the next hook, which is given what the client has sent.
    execute: () => ({}),
    onOperation({ connectionParams, extra: connection }, _id, content) {
      const authorization = authorizationOf(connection, connectionParams);
      return resultsOf(connection, (id) =>
        operations.run(connection.opening.request, { id, authorization }, content),
      );
    },

    // The errors of a result that was read from JSON are not instances of `GraphQLError`, as graphql-ws would have them.
    onNext: (_context, _id, _payload, _args, result) => result as FormattedExecutionResult,
    onError({ extra: connection }, _id, _payload, [error]) {
      const cause = error?.originalError;
      if (!(cause instanceof OperationFailed)) {
        connection.opening.report(error);
        return errorsOf('failed');
      }
      const refused = cause.errors.find(({ extensions }) => extensions?.code === 'UNAUTHENTICATED');
      if (refused) connection.close(CloseCode.Forbidden, refused.message);
      return cause.errors;
    },
  });
}

const rejectToken = (connection: GraphqlSocket, problem: TokenProblem) =>
  connection.close(
    CloseCode.Forbidden,
    problem === 'missing'
      ? 'Unauthorized: connection_init needs a payload such as {"Authorization":"Bearer TOKEN"}'
      : `Unauthorized: ${tokenProblems[problem]}`,
  );

/** The token in the payload of `connection_init`, for browsers, which cannot send the header. */
function tokenIn(payload: InitPayload): string | undefined {
  const [, value] =
    Object.entries(payload ?? {}).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return value == null ? undefined : String(value);
}

/** The value of the `Authorization` header for each operation. */
const authorizationOf = ({ opening }: GraphqlSocket, payload: InitPayload) =>
  opening.request.headers.authorization ?? tokenIn(payload);

/**
 * The viewer, who is counted until the socket closes. Closes the socket of a client without a valid
 * token, or with too many requests or connections, and returns undefined.
 */
async function admit(
  connection: GraphqlSocket,
  payload: InitPayload,
  { operations, connectionQuota }: ProtocolOptions,
): Promise<Viewer | undefined> {
  const authorization = authorizationOf(connection, payload);
  const incoming = { id: connection.nextId(), authorization };
  const who = await operations.identify(connection.opening.request, incoming);
  if (isResponse(who)) {
    const { errors } = JSON.parse(who.body.toString());
    return connection.close(closeCodes.tryAgainLater, errors[0].message);
  }
  const { viewer, hasExpired } = who;
  if (!viewer) return rejectToken(connection, problemOf(authorization, hasExpired));
  if (!connection.isOpen()) return undefined;
  if (!connectionQuota.acquire(viewer.id)) {
    const { limit } = connectionQuota;
    const reason = `There are ${limit} WebSockets open; at most ${limit} are allowed`;
    return connection.close(closeCodes.tryAgainLater, reason);
  }
  connection.opening.isInQuota = true;
  connection.onClosed(() => connectionQuota.release(viewer.id));
  return viewer;
}

type Turns = Pick<GraphqlSocket, 'nextId' | 'takeTurn'>;
type Run = (id: string) => ReturnType<Operations['run']>;

/**
 * The results of an operation. They end at once when graphql-ws stops them. After that graphql-ws would send a message with their
 * id, which the client may by now use for another operation. So `next` of a stopped operation never settles.
 */
function resultsOf(connection: Turns, run: Run): AsyncIterableIterator<ExecutionResult> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const results = readResults(connection, run, signal);
  const never = new Promise<never>(() => {});
  return {
    next: () => results.next().finally(() => (signal.aborted ? never : undefined)),
    async return() {
      stopping.abort();
      results.return().catch(() => {});
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/**
 * One result of a query or mutation, many of a subscription, each made when graphql-ws has sent the one before.
 * @throws {OperationFailed}
 */
async function* readResults({ nextId, takeTurn }: Turns, run: Run, stopped: AbortSignal) {
  const id = nextId();
  const endTurn = await takeTurn();
  try {
    if (stopped.aborted) return;
    const { exchange, response } = run(id);
    let hasBegun = false;
    // A stopped subscription is a success. The result of any other stopped operation is not read.
    stopped.addEventListener('abort', () => endExchange(exchange, hasBegun ? 200 : undefined));
    const given = await response;
    if (!('stream' in given)) {
      if (!stopped.aborted) yield wholeResult(exchange, given);
      return;
    }
    hasBegun = true;
    // A subscription lasts as long as the client wants, so nothing waits for its end.
    endTurn();
    const reader = given.stream.getReader();
    // A pending read of a cancelled stream ends at once.
    const cancel = () => void reader.cancel().catch(() => {});
    if (stopped.aborted) cancel();
    stopped.addEventListener('abort', cancel);
    try {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read())
        yield JSON.parse(Buffer.from(piece.value).toString());
    } finally {
      given.ended();
      endExchange(exchange, 200);
    }
  } finally {
    endTurn();
  }
}

/** The result in the response to a query or mutation. */
function wholeResult(exchange: Exchange, response: HttpResponse): ExecutionResult {
  const { status, body, headers } = response;
  exchange.operation ??= response.operation;
  exchange.errorCode = response.errorCode;
  endExchange(exchange, status);
  const result = JSON.parse(body.toString());
  if (status === 200) return result;
  // A message has no header `Retry-After`, so each error says it.
  const retryAfter = Number(headers['Retry-After'] ?? exchange.headers['Retry-After']);
  const errors: readonly GraphQLFormattedError[] = result.errors;
  throw new OperationFailed(
    Number.isNaN(retryAfter)
      ? errors
      : errors.map((error) => ({ ...error, extensions: { retryAfter, ...error.extensions } })),
  );
}
