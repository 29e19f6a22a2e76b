/**
 * Upgrades of connections to another protocol (RFC 9110, section 7.8): the gateway accepts WebSockets, and handles a request
 * that offers anything else as if it had no `Upgrade`.
 */

import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { end } from './connections.ts';

/** Whether a client wants to open a WebSocket (RFC 6455, section 4.1). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && /(^|,) *websocket *(,|$)/i.test(headers.upgrade ?? '');
}

/** The value that Node's parser has given the property `upgrade` of a request. */
const offered = Symbol('upgrade');

/**
 * The class of the requests of the gateway's server. Once a server listens to upgrades, Node treats every request whose
 * property `upgrade` is true as one, and never reads its body. Here the property is true of WebSockets and of `CONNECT`, which
 * counts as an upgrade as well. Other offers may be ignored: Java's client makes one of HTTP/2 with each request.
 */
export class GatewayRequest extends IncomingMessage {
  /** The constructor of the class above sets it, so it must have no initial value here. */
  declare [offered]: unknown;

  get upgrade(): boolean {
    return Boolean(this[offered]) && (this.method === 'CONNECT' || asksForWebSocket(this));
  }

  set upgrade(value: unknown) {
    this[offered] = value;
  }

  /** Whether the request offers an upgrade that the gateway ignores. */
  get hasIgnoredOffer(): boolean {
    return Boolean(this[offered]) && !this.upgrade;
  }
}

/**
 * Ends a connection with the response to a request whose offer of an upgrade is ignored. Node's parser stops at the end of
 * such a request, and loses what it has read beyond it: the beginning of the next request, whose body would be taken for a
 * request. So nothing that follows on the connection is handled, or even read.
 */
export function endAfterIgnoredOffers(
  handle: RequestListener<typeof GatewayRequest>,
): RequestListener<typeof GatewayRequest> {
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
