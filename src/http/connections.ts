/**
 * Watches the connections of a server: responds to clients that are too slow or do not speak HTTP, and closes their connections. A
 * client may offer to upgrade to another protocol (RFC 9110, section 7.8). The gateway accepts what an extension takes, and handles a
 * request with any other offer as if it had no `Upgrade`.
 */

import { readFileSync } from 'node:fs';
import { IncomingMessage, type RequestListener, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { networkOf } from './clientAddress.ts';
import { errorResponse, type HttpError, httpErrors } from './errorResponse.ts';
import type { Exchange } from './exchange.ts';
import { send } from './send.ts';

/** How long the server waits for clients, in milliseconds. */
export interface Timeouts {
  /** For the whole head of a request. */
  readonly head: number;
  /** For the whole request. */
  readonly request: number;
  /** For anything at all, in either direction. */
  readonly silence: number;
  /** For the next request. */
  readonly idle: number;
  /** For a request that is still on its way, or a response that is not read, when the gateway closes. */
  readonly closing: number;
}

export const timeouts: Timeouts = {
  head: 10_000,
  request: 30_000,
  silence: 120_000,
  // Longer than the idle timeout of most proxies (60 s), so that the proxy closes the connection first: a request that is sent
  // while the gateway closes the connection is lost, and one that writes must not be repeated.
  idle: 75_000,
  closing: 5_000,
};

/** How long, in seconds, a request may wait for a change: less than `silence`, and than the minute after which many proxies give up. */
export const longestWait = 50;

/** How long, in milliseconds, a client may take to read its last response before the connection is cut. */
const lastWords = 1_000;

/** How long, in milliseconds, an idle connection waits for one more request when the gateway closes. */
const lastRequest = 1_000;

/** How many descriptors stay free for files, for other services and for other uses. */
const reserve = 200;

/**
 * How many clients may be connected: one for each descriptor of the process, except its `own` connections and the reserve. Of few
 * descriptors they get a sixteenth: a process without a free one takes its database for away.
 */
export const mostConnections = (own: number, descriptors = readDescriptors()): number =>
  Math.max(descriptors - reserve - own, Math.floor(descriptors / 16));

function readDescriptors(): number {
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(most ?? Number.POSITIVE_INFINITY);
  } catch {
    // Only Linux has this file.
    return Number.POSITIVE_INFINITY;
  }
}

/** How many requests a client may send before it has the response to an earlier one. Each of them takes memory. */
export const mostPipelined = 200;

/**
 * @param closing aborted when the gateway closes.
 * @param trustedProxies how many proxies stand before the gateway.
 */
export function watchConnections(
  server: Server,
  { head, request, silence, idle, closing: grace }: Timeouts,
  closing: AbortSignal,
  trustedProxies: number,
) {
  const connections = new Map<Duplex, ConnectionState>();
  server.headersTimeout = head;
  server.requestTimeout = request;
  server.timeout = silence;
  server.keepAliveTimeout = idle;
  // A client that has sent everything and says so still gets its response (RFC 9112, section 9.6). Streams end (`sendStream`).
  Object.assign(server, { httpAllowHalfOpen: true });

  const byAddress: Addresses = new Map();
  server.on('connection', (socket) => {
    const connection = open(connections, socket);
    // All clients of a trusted proxy have its address. Node closes a connection beyond the most before it gets here.
    const most = trustedProxies > 0 ? server.maxConnections - 1 : server.maxConnections / 2;
    noteAddress(connections, byAddress, socket, connection, most);
  });

  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
    const error = httpErrorOf(code);
    const { latest } = connections.get(socket) ?? {};
    if (latest && !latest.request.complete) cutShort(socket, latest, error);
    // The error is in data after the request, so the request gets its response first.
    else if (latest && !latest.response.writableFinished)
      latest.response.once('finish', () => endWith(socket, error));
    else endWith(socket, error);
  });

  /**
   * Must be called for a connection that Node no longer handles, since the client asked for another protocol.
   * @param next called once the responses to earlier requests are sent; never if the client has left.
   */
  function detach(socket: Duplex, next: () => void): void {
    // Node has removed its listeners, and an error without a listener would end the process.
    socket.on('error', () => {});
    const response = connections.get(socket)?.latest?.response;
    const proceed = () => {
      if (socket.writable) next();
      connections.delete(socket);
    };
    // Node detaches a response from its connection a moment after it is written.
    if (!response || (response.writableFinished && response.socket === null)) proceed();
    else response.once('finish', proceed);
  }

  // Node emits this event for a request to open a tunnel, instead of `request`.
  server.on('connect', (_request, socket) =>
    detach(socket, () => endWith(socket, httpErrors.methodNotAllowed)),
  );

  // `close` calls it. It would cut off a response that the client has not read yet, or a request on its way.
  server.closeIdleConnections = () => {};
  closing.addEventListener('abort', () => close(server, connections, grace));

  return {
    /**
     * Must be called for each exchange that begins, which has to wait until the promise is resolved if there is one. It never is if
     * the client leaves before.
     */
    begin(exchange: Exchange): Promise<void> | undefined {
      if (closing.aborted) exchange.response.shouldKeepAlive = false;
      return begin(connections.get(exchange.request.socket), exchange);
    },
    detach,
  };
}

interface ConnectionState {
  latest: Exchange | undefined;
  /** Whether a request before the latest had a valid token. */
  hasViewer: boolean;
  /** The responses that come after others, to requests that the client sent without waiting for those. */
  queued: Set<ServerResponse> | undefined;
}

function open(connections: Map<Duplex, ConnectionState>, socket: Socket): ConnectionState {
  const connection: ConnectionState = { latest: undefined, hasViewer: false, queued: undefined };
  connections.set(socket, connection);
  socket.once('close', () => {
    connections.delete(socket);
    endQueued(connection);
  });
  return connection;
}

/** The connections of each address or network, also those that Node no longer handles. */
type Addresses = Map<string, Map<Socket, ConnectionState>>;

/**
 * Notes the address of a connection. If one address has too many connections, its oldest idle one is ended, and rather one without a
 * valid token. What a quota of a viewer counts, such as a WebSocket, does not count here: a proxy has the connections of many viewers.
 */
function noteAddress(
  connections: Map<Duplex, ConnectionState>,
  byAddress: Addresses,
  socket: Socket,
  connection: ConnectionState,
  most: number,
): void {
  // Node remembers the address once it was read: rate limits count requests whose client has left as well.
  const address = networkOf(socket.remoteAddress ?? '');
  const own = (byAddress.get(address) ?? new Map()).set(socket, connection);
  byAddress.set(address, own);
  socket.once('close', () => {
    own.delete(socket);
    if (own.size === 0) byAddress.delete(address);
  });
  if (own.size <= most) return;
  const counted = [...own].filter(([, each]) => !isInQuota(each));
  if (counted.length <= most) return;
  const idle = counted.filter(([each, state]) => connections.has(each) && isIdle(state));
  const anonymous = idle.find(([each, state]) => each !== socket && !hasViewer(state));
  // The new one is the last of them.
  const [ended] = anonymous ?? idle[0] ?? [socket];
  // Another one is next.
  connections.delete(ended);
  end(ended);
}

const hasViewer = (connection: ConnectionState) => connection.hasViewer || connection.latest?.hasViewer;

const isInQuota = ({ latest }: ConnectionState) => latest?.isInQuota && !latest.response.writableFinished;

/** Whether the client has sent no request yet, or has got the response to each. */
const isIdle = ({ latest }: ConnectionState) =>
  !latest || (latest.request.complete && latest.response.writableFinished);

function begin(connection: ConnectionState | undefined, exchange: Exchange): Promise<void> | undefined {
  if (!connection) return undefined;
  connection.hasViewer ||= connection.latest?.hasViewer ?? false;
  const before = connection.latest?.response;
  connection.latest = exchange;
  const { response } = exchange;
  if (response.socket !== null) return undefined;
  connection.queued ??= new Set();
  connection.queued.add(response);
  // Node would go on reading, since a request that waits has no response yet.
  if (connection.queued.size > mostPipelined) exchange.request.socket.destroy();
  response.once('close', () => connection.queued?.delete(response));
  // Requests that a client sends without waiting are handled one after the other (RFC 9112, section 9.3.2): one before may write, or be
  // answered by a stream. Were the responses of many made ahead, Node would stop reading, and not notice when the client leaves.
  if (!before || before.writableFinished) return undefined;
  return new Promise((resolve) => before.once('finish', resolve));
}

/** Ends the queued responses of a connection that is closed. Node ends only the one that it was sending. */
function endQueued({ queued = new Set() }: ConnectionState): void {
  for (const response of queued) if (!response.socket) response.destroy().emit('close');
}

/**
 * Closes the connections. From now on responses have `Connection: close`. An idle connection waits for one more request, since one
 * may be on its way. After the grace period, connections are cut unless they wait for a response.
 */
function close(server: Server, connections: ReadonlyMap<Duplex, ConnectionState>, grace: number): void {
  const began = performance.now();
  for (const { latest } of connections.values())
    if (latest && !latest.response.headersSent) latest.response.shouldKeepAlive = false;
  function sweep(): void {
    const lasted = performance.now() - began;
    for (const [socket, connection] of connections) {
      const { latest } = connection;
      if (latest && isIdle(connection) && lasted >= Math.min(lastRequest, grace)) end(socket);
      if (lasted < grace) continue;
      if (!latest) end(socket);
      else if (latest.response.headersSent) socket.destroy();
      else if (!latest.request.complete) cutShort(socket, latest, httpErrors.tooSlow);
    }
  }
  const sweeping = setInterval(sweep, Math.min(grace, 100));
  server.once('close', () => clearInterval(sweeping));
}

function httpErrorOf(code: string | undefined): HttpError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return httpErrors.tooSlow;
  return code === 'HPE_HEADER_OVERFLOW' ? httpErrors.headersTooLarge : httpErrors.badRequest;
}

/** Ends an exchange whose request will never be complete. */
function cutShort(socket: Duplex, latest: Exchange, error: HttpError): void {
  if (latest.response.headersSent) socket.destroy();
  else send(latest, errorResponse(latest.endpoint, error, { Connection: 'close' }));
}

/** Responds on a connection without a request, in the envelope of the REST API, and ends it. */
function endWith(socket: Duplex, error: HttpError): void {
  if (!socket.writable) return;
  const { status, headers, body } = errorResponse('rest', error, {
    Connection: 'close',
    Date: new Date().toUTCString(),
  });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  end(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

/** Ends a connection, and cuts it after a while: if it were cut at once, a client that is still sending would lose the response. */
export function end(socket: Duplex, text?: string): void {
  if (!socket.writable) return;
  socket.end(text);
  socket.resume();
  const cut = setTimeout(() => socket.destroy(), lastWords);
  socket.once('close', () => clearTimeout(cut));
}

/** The value that Node's parser has given the property `upgrade` of a request. */
const offered = Symbol('upgrade');

/**
 * Makes the class of the requests of the gateway's server. Once a server listens to upgrades, Node treats every request whose
 * property `upgrade` is true as an upgrade, and never reads its body. Here the property is true for offers that are accepted and for
 * `CONNECT`, which counts as an upgrade as well. Other offers may be ignored: Java's client offers HTTP/2 with each request.
 */
export const createRequestClass = (accepts: (request: IncomingMessage) => boolean) =>
  class extends IncomingMessage {
    /** The constructor of the base class sets it, so it must have no initial value here. */
    declare [offered]: unknown;

    get upgrade(): boolean {
      return Boolean(this[offered]) && (this.method === 'CONNECT' || accepts(this));
    }

    set upgrade(value: unknown) {
      this[offered] = value;
    }

    /** Whether the request offers an upgrade that the gateway ignores. */
    get hasIgnoredOffer(): boolean {
      return Boolean(this[offered]) && !this.upgrade;
    }
  };

type RequestClass = ReturnType<typeof createRequestClass>;

/**
 * Ends a connection with the response to a request whose offer of an upgrade is ignored. Node's parser stops at the end of such a
 * request, and loses the data after it: the head of the next request, whose body would then be parsed as a request. So nothing
 * that follows on the connection is handled, or even read.
 */
export function endAfterIgnoredOffers(handle: RequestListener<RequestClass>): RequestListener<RequestClass> {
  const ending = new WeakSet<Duplex>();
  return (request, response) => {
    const { socket } = request;
    // The client would not get a response on a connection that was ended.
    if (ending.has(socket) || !socket.writable) {
      socket.pause();
      return;
    }
    if (request.hasIgnoredOffer) {
      ending.add(socket);
      response.shouldKeepAlive = false;
    }
    handle(request, response);
  };
}

/** Creates a response on a connection that Node no longer handles after an upgrade. It ends the connection. */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Node's servers have sockets, whatever the declared type.
  response.assignSocket(socket as IncomingMessage['socket']);
  response.once('finish', () => end(socket));
  return response;
}
