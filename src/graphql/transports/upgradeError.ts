/**
 * Checks requests for a WebSocket. A module of its own, since the other modules of WebSockets are loaded with the
 * first one.
 */

import { errorResponse, type HttpError } from '../../http/errorResponse.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HttpResponse } from '../../http/response.ts';

const protocol = 'graphql-transport-ws';

/** RFC 6455, section 4.2.1: 16 bytes in base64. */
const usableKey = /^[+/\w]{22}==$/;

/** The response to a request that does not become a WebSocket, undefined for one that does. */
export function findUpgradeError({ request, endpoint }: Exchange): HttpResponse | undefined {
  const { headers } = request;
  const fail = (error: HttpError, others: Record<string, string> = {}) =>
    errorResponse(endpoint, error, { Connection: 'close', ...others });
  const required = (message: string, others: Record<string, string> = {}) =>
    // A 426 has to name the protocol that is supported (RFC 9110, section 15.5.22).
    fail(
      { status: 426, code: 'BAD_USER_INPUT', message },
      { Upgrade: 'websocket', Connection: 'Upgrade, close', ...others },
    );

  if (endpoint !== 'graphql') return required('WebSockets are opened at /graphql, and nowhere else');
  if (headers.upgrade?.trim().toLowerCase() !== 'websocket')
    return required('Upgrade must name websocket, and no other protocol beside it');
  if (headers['sec-websocket-version'] !== '13')
    return required('The version of the WebSocket protocol is 13', { 'Sec-WebSocket-Version': '13' });
  if (!usableKey.test(headers['sec-websocket-key'] ?? ''))
    return fail({ code: 'BAD_USER_INPUT', message: 'Sec-WebSocket-Key must be 16 bytes in base64' });
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim());
  if (offered && !offered.includes(protocol))
    return required(
      `The subprotocol of WebSockets is ${protocol}: not the older graphql-ws of subscriptions-transport-ws, nor any other`,
      { 'Sec-WebSocket-Protocol': protocol },
    );
  return undefined;
}
