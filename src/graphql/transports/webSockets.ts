/**
 * WebSockets: the server of graphql-ws over `ws`, with the hooks by which the pipeline authenticates its clients and runs their
 * operations. This file opens sockets, bounds what each of them buffers and runs at a time, ends those whose client is silent, and
 * closes all with the gateway.
 *
 * Promises: the protocol `graphql-transport-ws`; an operation is limited, cached, logged and measured like a POST; a socket ends
 * with its token; results that a client does not read are bounded. May be replaced by graphql-ws' adapter of another WebSocket server.
 */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLFormattedError,
  GraphQLSchema,
  parse,
} from 'graphql';
import { CloseCode, type ConnectionInitMessage, handleProtocols, makeServer, type Server } from 'graphql-ws';
import pLimit from 'p-limit';
import { type WebSocket, WebSocketServer } from 'ws';
import { problemOf, type Viewer } from '../../auth/viewer.ts';
import { type TokenProblem, tokenProblems } from '../../errors.ts';
import { type Exchange, endExchange } from '../../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../../http/response.ts';
import type { UserQuota } from '../userQuota.ts';
import { errorsOf, OperationFailed } from './endings.ts';

interface WebSocketsOptions extends ProtocolOptions {
  /** How many bytes a message may have. */
  readonly longestMessage: number;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
}

/** The close codes of a client that leaves in order, or without a code. */
const inOrder = new Set([1000, 1001, 1005, 1006]);

export function createWebSockets({ longestMessage, closing, ...options }: WebSocketsOptions) {
  const server = createServer(longestMessage);
  const protocol = createProtocol(options);

  function serve(webSocket: WebSocket, exchange: Exchange): void {
    const connection = createGraphqlSocket(webSocket, exchange);
    const closed = protocol.opened(connection, connection);
    const leave = () => void connection.leave();
    closing.addEventListener('abort', leave);
    webSocket.once('close', (code, reason) => {
      closing.removeEventListener('abort', leave);
      void closed(code, String(reason));
      if (!inOrder.has(code)) exchange.errorCode = String(code);
      endExchange(exchange, 101);
    });
    if (closing.aborted) leave();
  }

  return {
    /** Opens a WebSocket. `webSocketAccess.ts` must have found no error in the request. */
    accept(exchange: Exchange, socket: Duplex, head: Buffer): void {
      const { request, response } = exchange;
      server.handleUpgrade(request, socket, head, (webSocket) => {
        // From now on the exchange ends when the socket does.
        response.detachSocket(request.socket);
        serve(webSocket, exchange);
      });
    },
  };
}

/** @param longestMessage in bytes. */
function createServer(longestMessage: number): WebSocketServer {
  const options = {
    noServer: true,
    maxPayload: longestMessage,
    // Each fragment holds memory of its own, however short, and so does each piece of an incomplete one. Browsers send long
    // messages in fragments of about 64 KiB, and networks in pieces of about 1 KiB.
    maxFragments: 16 + Math.ceil(longestMessage / (16 * 1024)),
    maxBufferedChunks: 1024 + Math.ceil(longestMessage / 512),
    // graphql-ws takes a moment to note an operation, which the client's next message may be about.
    allowSynchronousEvents: false,
    // The zlib context of a socket takes more memory than the rest of the socket.
    perMessageDeflate: false,
    clientTracking: false,
    closeTimeout: goodbye,
    handleProtocols,
  };
  return new WebSocketServer(options);
}

/** How many bytes may wait to be read by the client. Above that the gateway stops reading from the client. */
const mostUnread = 64 * 1024;

/** How many operations may run at a time, not counting subscriptions that have begun, which have a limit of their own. */
const mostRunning = 100;

/** The milliseconds between two pings, and how many may stay unanswered before the connection is ended. */
const pings = { every: 12_000, most: 2 };

/** How many milliseconds a client has to read the last messages, and to close its side as well. */
const goodbye = 2_000;

/**
 * One WebSocket, as graphql-ws uses it and with what the hooks need.
 * @param opening the exchange of the request that has become the socket.
 */
export function createGraphqlSocket(socket: WebSocket, opening: Exchange) {
  const turns = pLimit(mostRunning);
  let count = 0;
  const isOpen = () => socket.readyState === socket.OPEN;

  /** Stops reading from the client while it does not read, or has too many operations. */
  function adjustReading(): void {
    if (isOpen() && (socket.bufferedAmount > mostUnread || turns.pendingCount > 0)) socket.pause();
    else socket.resume();
  }

  /** Settles when another operation may run, with the function that ends its turn. */
  const takeTurn = () =>
    new Promise<() => void>((begin) => {
      void turns(() => {
        adjustReading();
        return new Promise<void>((end) => begin(end));
      });
      adjustReading();
    });

  const close = (code: number, reason: string) => closeSocket(socket, code, reason);

  keepAlive(socket);
  // Errors in the frames of the client: ws tells the client, and closes the socket.
  socket.on('error', () => {});

  return {
    opening,
    protocol: socket.protocol,
    isOpen,
    close,
    takeTurn,

    send: (text: string) =>
      new Promise<void>((settle) => {
        if (!isOpen()) return settle();
        // The callback has an error if the socket is gone. The `close` event handles that.
        socket.send(text, () => {
          adjustReading();
          settle();
        });
        adjustReading();
      }),

    onMessage: (handle: (text: string) => Promise<void>) =>
      void socket.on('message', (data) => {
        if (!isOpen()) return;
        // graphql-ws throws for a message of a type that only servers send.
        handle(String(data)).catch(() => close(CloseCode.BadRequest, 'Invalid message received'));
      }),

    /** The next id for the log: that of the socket and a number, which is 0 for the authentication. */
    nextId: () => `${opening.id}.${count++}`,

    /** Calls back when the socket is closed. */
    onClosed: (cleanup: () => void) => void socket.once('close', cleanup),

    /** Closes once all queries and mutations have their results. Subscriptions get no `complete`: clients subscribe elsewhere. */
    async leave(): Promise<void> {
      const cut = setInterval(() => {
        if (socket.bufferedAmount > mostUnread) socket.terminate();
      }, goodbye);
      socket.once('close', () => clearInterval(cut));
      // The last turn begins when no other operation runs.
      turns.concurrency = 1;
      await takeTurn();
      close(closeCodes.goingAway, 'The gateway closes');
    },
  };
}

function closeSocket(socket: WebSocket, code: number, reason: string): undefined {
  // A reason may have 123 bytes (RFC 6455, section 5.5).
  socket.close(code, Buffer.byteLength(reason) > 123 ? '' : reason);
  // A paused socket would not read the client's close frame.
  socket.resume();
}

/** Sends pings, and ends the connection of a client that does not respond, or does not read. */
function keepAlive(socket: WebSocket): void {
  let missed = 0;
  const onSign = () => {
    missed = 0;
  };
  socket.on('pong', onSign).on('message', onSign);
  const timer = setInterval(() => {
    // No pong can be read while the client has to wait for its operations.
    const waits = socket.isPaused && socket.bufferedAmount === 0;
    if (!waits && ++missed > pings.most) return socket.terminate();
    if (socket.readyState === socket.OPEN) socket.ping();
  }, pings.every);
  socket.once('close', () => clearInterval(timer));
}

/** An operation, or the authentication of the client before its first operation. */
interface Incoming {
  /** The request id in the log. */
  readonly id: string;
  /** The value that a request would have in its `Authorization` header. */
  readonly authorization: string | undefined;
  /** The parsed value that a request would have in its body; undefined for the authentication. */
  readonly content?: unknown;
}

/** The pipeline as WebSockets use it: it authenticates clients, and runs operations that have no request of their own. */
export interface PipelineAccess {
  /**
   * Runs an operation as if it were a request: it is counted, limited, cached, logged and measured as one.
   * @param opening the request that opened the connection.
   * @returns an exchange, which the caller has to end, and the response, which never rejects. The stream of a subscription
   * has one result in each piece, and breaks off with an `OperationFailed`.
   */
  run(
    opening: IncomingMessage,
    incoming: Incoming,
  ): { readonly exchange: Exchange; readonly response: Promise<HttpResponse | StreamedResponse> };
  /**
   * Authenticates a client, which counts as a request for the rate limit.
   * @returns the viewer, null for a token that is not valid; or the error response of a rejected request. Never rejects.
   */
  identify(
    opening: IncomingMessage,
    incoming: Incoming,
  ): Promise<{ readonly viewer: Viewer | null; readonly hasExpired?: boolean } | HttpResponse>;
  /** Calls back, at most once, when the viewer's token ends. @returns a function that ends the watch. */
  watchToken(viewer: Viewer, onEnded: (problem: TokenProblem) => void): () => void;
}

type GraphqlSocket = ReturnType<typeof createGraphqlSocket>;

/** Codes of the registry that RFC 6455 opens (section 11.7). Clients connect again after them. */
const closeCodes = { goingAway: 1001, tryAgainLater: 1013 } as const;

interface ProtocolOptions {
  readonly operations: PipelineAccess;
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
        operations.run(connection.opening.request, { id, authorization, content }),
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
  if ((tokenIn(payload) ?? authorization) !== authorization) {
    const reason = 'connection_init has another token than the Authorization header';
    return connection.close(CloseCode.BadRequest, reason);
  }
  const incoming = { id: connection.nextId(), authorization };
  const who = await operations.identify(connection.opening.request, incoming);
  if (isResponse(who)) {
    const { errors } = JSON.parse(who.body.toString());
    return connection.close(closeCodes.tryAgainLater, errors[0].message);
  }
  const { viewer, hasExpired = false } = who;
  if (!viewer) return rejectToken(connection, problemOf(authorization, hasExpired));
  if (!connection.isOpen()) return undefined;
  if (!connectionQuota.acquire(viewer.id)) {
    const { limit } = connectionQuota;
    const reason = `There are ${limit} WebSockets open; at most ${limit} are allowed`;
    return connection.close(closeCodes.tryAgainLater, reason);
  }
  connection.onClosed(() => connectionQuota.release(viewer.id));
  return viewer;
}

type Turns = Pick<GraphqlSocket, 'nextId' | 'takeTurn'>;
type Run = (id: string) => ReturnType<PipelineAccess['run']>;

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
