/** An upstream whose responses a test decides. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, shut } from '../../../support/listen.ts';

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

interface ScriptedRequest {
  readonly method: string;
  /** As the client has sent it. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export async function openScripted() {
  const requests: ScriptedRequest[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method = '', url: target = '', headers } = request;
    requests.push({ method, target, headers, body });
    scripted.respond(request, response);
  });
  const scripted = {
    base: `${await listen(server)}/api/v1`,
    requests,
    respond: ((_request, response) => response.end('{}')) as Respond,
    /** Accepts no more connections, and ends those that there are once they are idle. */
    refuse: () => new Promise((resolve) => server.close(resolve)),
    close: () => shut(server),
  };
  return scripted;
}

export type Scripted = Awaited<ReturnType<typeof openScripted>>;

export function reply(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
