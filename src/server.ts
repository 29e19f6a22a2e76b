/** The HTTP server: finds out who is asking, and shows each request to its door. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { authenticate } from './auth/viewer.ts';
import { createContext, type UpstreamAccount } from './context.ts';
import type { Database } from './database/database.ts';
import { messages } from './errors.ts';
import { createGraphqlDoor } from './graphql/yoga.ts';
import { createRestDoor } from './rest/handler.ts';

export interface ServerOptions {
  database: Database;
  logger: Logger;
  demoToken: string | undefined;
  /** The account that the database mirrors, and how fresh it is. */
  mirror?: { readonly upstream: UpstreamAccount; status(): string } | undefined;
}

const restPath = '/api/v1';

export function createGatewayServer({ database, logger, demoToken, mirror }: ServerOptions): Server {
  const doorOptions = {
    createContext: createContext.bind(undefined, database.client, mirror?.upstream),
    onError: (error: unknown) => logger.error({ err: error }, 'request failed'),
  };
  const rest = createRestDoor(doorOptions);
  const graphql = createGraphqlDoor({ ...doorOptions, demoToken });
  const viewerOf = (request: IncomingMessage) => authenticate(database.client, request.headers.authorization);

  return createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      doorOptions.onError(error);
      if (response.headersSent) response.destroy();
      else failed(response, targetOf(request));
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = targetOf(request);
    const path = target.split('?', 1)[0] ?? '';
    if (path === restPath || path.startsWith(`${restPath}/`)) {
      await rest(request, response, target.slice(restPath.length), await viewerOf(request));
    } else if (path === '/graphql') {
      await graphql(request, response, { viewer: await viewerOf(request) });
    } else if (path === '/healthz') {
      writeText(response, 200, 'alive');
    } else if (path === '/readyz') {
      const ready = await isReachable(database);
      const lines = [ready ? 'ready' : 'the database cannot be reached'];
      // Told, but no reason to be unready: without its upstream the mirror still answers.
      if (mirror) lines.push(`upstream: ${mirror.status()}`);
      writeText(response, ready ? 200 : 503, lines.join('\n'));
    } else if (path === '/') {
      response.writeHead(302, { Location: '/graphql' }).end();
    } else {
      writeText(response, 404, `Nothing is here. Try /graphql or ${restPath}.`);
    }
  }
}

/** The request's target in origin form; a client that talks to a proxy sends the absolute form (RFC 9112, 3.2). */
function targetOf({ url = '/' }: IncomingMessage): string {
  return url.replace(/^https?:\/\/[^/?]*/i, '');
}

async function isReachable({ pool }: Database): Promise<boolean> {
  return pool.query('SELECT 1').then(
    () => true,
    () => false,
  );
}

/** The answer when even finding out who is asking failed, in the words of the door that was meant. */
function failed(response: ServerResponse, target: string): void {
  const error = messages.internal;
  const body = target.startsWith(restPath)
    ? { ok: false, error }
    : { errors: [{ message: error, extensions: { code: 'INTERNAL_SERVER_ERROR' } }] };
  response.writeHead(500, { 'Content-Type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}

function writeText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}
