/** The target of a request (RFC 9112, section 3.2), and the endpoint that it is meant for. */

import type { IncomingMessage } from 'node:http';

/** What a request is meant for. */
export type Endpoint = 'rest' | 'graphql' | 'mcp' | 'page';

/** The path of the REST API. */
export const restPath = '/api/v1';

/** The path of the tools for language models. */
const mcpPath = '/mcp';

export function endpointOf(path: string): Endpoint {
  if (path === restPath || path.startsWith(`${restPath}/`)) return 'rest';
  if (path === '/graphql') return 'graphql';
  return path === mcpPath ? 'mcp' : 'page';
}

/** The target without its query. */
export function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/** The target in origin form. A client that talks to a proxy sends the absolute form. */
export function targetOf({ url = '/' }: IncomingMessage): string {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '');
  // An empty path means the root (RFC 9110, section 4.2.3).
  return target === '' || target.startsWith('?') ? `/${target}` : target;
}
