/** GraphQL over WebSocket, by the protocol `graphql-transport-ws`. Loaded with the first WebSocket. */

import type { IncomingMessage } from 'node:http';
import type { Extension } from '../../extensionPoints.ts';

export const webSockets: Extension = {
  settings: {},
  open: async (config) => ({
    upgrades: {
      accepts: asksForWebSocket,
      createHandler(pipeline) {
        const load = async () => (await import('./upgrades.ts')).createUpgrades(config, pipeline);
        let loading: ReturnType<typeof load> | undefined;
        return async (...given) => {
          // A load that fails is tried again by the next one.
          loading ??= load().catch((error: unknown) => {
            loading = undefined;
            throw error;
          });
          (await loading)(...given);
        };
      },
    },
  }),
};

/** Whether a client wants to open a WebSocket (RFC 6455, section 4.1): not by HTTP/1.0, nor with a body, which would be read as frames. */
function asksForWebSocket({ method, headers, httpVersionMinor }: IncomingMessage): boolean {
  if (method !== 'GET' || httpVersionMinor === 0) return false;
  if ('transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0) return false;
  return /(^|,) *websocket *(,|$)/i.test(headers.upgrade ?? '');
}
