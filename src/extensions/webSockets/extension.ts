/** GraphQL over WebSocket, by the protocol `graphql-transport-ws`. */

import type { IncomingMessage } from 'node:http';
import type { Extension } from '../../extensionPoints.ts';

export const webSockets: Extension = {
  settings: {},
  async open(config) {
    // Not with the first WebSocket: if no descriptor were free then, Node 20 would never load it again.
    const { createUpgrades } = await import('./upgrades.ts');
    return {
      upgrades: {
        accepts: asksForWebSocket,
        createHandler(pipeline) {
          const upgrade = createUpgrades(config, pipeline);
          return async (...given) => upgrade(...given);
        },
      },
    };
  },
};

/** Whether a client wants to open a WebSocket (RFC 6455, section 4.1): not by HTTP/1.0, nor with a body, which would be read as frames. */
function asksForWebSocket({ method, headers, httpVersionMinor }: IncomingMessage): boolean {
  if (method !== 'GET' || httpVersionMinor === 0) return false;
  if ('transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0) return false;
  return /(^|,) *websocket *(,|$)/i.test(headers.upgrade ?? '');
}
