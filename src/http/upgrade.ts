/** Upgrades of connections (RFC 9110, section 7.8): which of them are taken, and what the others are told. */

import { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { cutSoon } from './timeouts.ts';

/** Whether a client wants to open a WebSocket (RFC 6455, section 4.1). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && /(^|,) *websocket *(,|$)/i.test(headers.upgrade ?? '');
}

/** What Node's parser notes of a request. */
const noted = Symbol('upgrade');

/**
 * A request as Node's server makes them. Node takes every request with an `Upgrade` for one once somebody listens to
 * upgrades, and never reads its body. Others than WebSockets are offers, which may be passed over: Java's client makes one
 * with each request, of HTTP/2. A `CONNECT` counts as an upgrade as well.
 */
export class GatewayRequest extends IncomingMessage {
  /** Set by the constructor of the class above, so it must have no initial value here. */
  declare [noted]: unknown;

  get upgrade(): boolean {
    return Boolean(this[noted]) && (this.method === 'CONNECT' || asksForWebSocket(this));
  }

  set upgrade(value: unknown) {
    this[noted] = value;
  }
}

/** A response on the connection of a request for an upgrade, which Node has let go of. Ends the connection. */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // Node's servers have sockets, whatever the declared type.
  response.assignSocket(socket as IncomingMessage['socket']);
  response.once('finish', () => {
    socket.end();
    cutSoon(socket);
  });
  return response;
}
