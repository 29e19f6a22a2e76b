/** The HTTP server: finds out who is asking, and shows each request to its door. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { send } from './answer.ts';
import { createViewers, type Viewer } from './auth/viewer.ts';
import { createContext, type UpstreamAccount } from './context.ts';
import type { Database } from './database/database.ts';
import type { ChangeFeed } from './database/feed.ts';
import { messages } from './errors.ts';
import { createGraphqlDoor } from './graphql/door.ts';
import type { KeptAnswers } from './kept.ts';
import { createFollow } from './live.ts';
import type { DocsDoor } from './pages/docs.ts';
import { createRestDoor } from './rest/handler.ts';

export interface ServerOptions {
  database: Database;
  feed: ChangeFeed;
  kept: KeptAnswers;
  logger: Logger;
  demoToken: string | undefined;
  /** Aborted when the gateway closes. */
  closing: AbortSignal;
  /** For a database that mirrors an account: where it lives, and how fresh the mirror is. */
  mirror?: { readonly upstream: UpstreamAccount; status(): string } | undefined;
}

const restPath = '/api/v1';

export function createGatewayServer(options: ServerOptions): Server {
  const { database, feed, kept, logger, demoToken, closing, mirror } = options;
  const viewers = createViewers(database.client, feed);
  const doorOptions = {
    kept,
    createContext: (viewer: Viewer) =>
      createContext(database.client, viewer, createFollow(feed, viewers, viewer), mirror?.upstream),
    onError: (error: unknown) => logger.error({ err: error }, 'request failed'),
  };
  const rest = createRestDoor(doorOptions);
  const graphql = createGraphqlDoor({ ...doorOptions, demoToken, closing });
  /** Loaded for the first who asks: most gateways are never asked for their reference. */
  let docs: Promise<DocsDoor> | undefined;

  // Keep-alive probes find clients that are gone without a word, such as the readers of idle streams.
  return createServer({ keepAlive: true, keepAliveInitialDelay: 30_000 }, (request, response) => {
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
      const below = target.slice(restPath.length);
      const viewer = await viewerOf(request);
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      const found = viewer && isRead ? kept.find(viewer.id, below) : undefined;
      send(request, response, found ?? (await rest(request, below, viewer)));
    } else if (path === '/graphql') {
      await graphql(request, response, target, await viewerOf(request));
    } else if (path === '/openapi.json' || path === '/docs' || path.startsWith('/docs/')) {
      docs ??= import('./pages/docs.ts').then(({ createDocs }) => createDocs(demoToken));
      send(request, response, await (await docs)(request, path));
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

  async function viewerOf({ headers }: IncomingMessage): Promise<Viewer | null> {
    return viewers.known(headers.authorization) ?? viewers.authenticate(headers.authorization);
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
