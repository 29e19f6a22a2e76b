/** The HTTP server: finds out who is asking, and shows each request to its door. */

import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import { type Answer, jsonAnswer, send, textAnswer } from './answer.ts';
import { createViewers, type Viewer } from './auth/viewer.ts';
import type { Config } from './config.ts';
import { createContext, type UpstreamAccount } from './context.ts';
import { createCors } from './cors.ts';
import type { Database } from './database/database.ts';
import type { ChangeFeed } from './database/feed.ts';
import { messages } from './errors.ts';
import { type Door, type Exchange, logOutcome, openExchange, restPath } from './exchange.ts';
import { createGraphqlDoor } from './graphql/door.ts';
import type { KeptAnswers } from './kept.ts';
import { createFollow } from './live.ts';
import type { Metrics } from './metrics.ts';
import { homeAnswer } from './pages/home.ts';
import type { Page } from './pages/page.ts';
import { createRestDoor } from './rest/handler.ts';
import { printedSchema } from './schema/schema.ts';
import { requestSpans } from './spans.ts';

export interface ServerOptions {
  config: Config;
  database: Database;
  feed: ChangeFeed;
  kept: KeptAnswers;
  logger: Logger;
  metrics?: Metrics | undefined;
  demoToken: string | undefined;
  /** Aborted when the gateway closes. */
  closing: AbortSignal;
  /** For a database that mirrors an account: where it lives, and how fresh the mirror is. */
  mirror?: { readonly upstream: UpstreamAccount; status(): string } | undefined;
}

export function createGatewayServer(options: ServerOptions): Server {
  const { config, database, feed, kept, logger, metrics, demoToken, closing, mirror } = options;
  const viewers = createViewers(database.sql, feed);
  const doorOptions = {
    kept,
    createContext: (viewer: Viewer) =>
      createContext(database.sql, viewer, createFollow(feed, viewers, viewer), mirror?.upstream),
  };
  const rest = createRestDoor(doorOptions);
  const graphql = createGraphqlDoor({ ...doorOptions, config, demoToken, closing });
  const cors = createCors(config.CORS_ORIGINS);

  /** Loaded for the first who asks: most gateways are never asked for their reference. */
  let loadedDocs: Promise<Page> | undefined;
  const docs: Page = async (exchange) => {
    loadedDocs ??= import('./pages/docs.ts').then(({ createDocs }) => createDocs(demoToken));
    return (await loadedDocs)(exchange);
  };

  /** What is neither door: pages and probes, by path. */
  const pages: Readonly<Record<string, Page>> = {
    '/': (exchange) => homeAnswer(exchange, demoToken),
    '/openapi.json': docs,
    '/docs': docs,
    ...(config.INTROSPECTION === 'on' && { '/schema.graphql': () => textAnswer(200, printedSchema()) }),
    '/healthz': () => textAnswer(200, 'alive'),
    '/readyz': async () => {
      const ready = await isReachable(database);
      const lines = [ready ? 'ready' : 'the database cannot be reached'];
      // Told, but no reason to be unready: without its upstream the mirror still answers.
      if (mirror) lines.push(`upstream: ${mirror.status()}`);
      return textAnswer(ready ? 200 : 503, lines.join('\n'));
    },
  };

  // Keep-alive probes find clients that are gone without a word, such as the readers of idle streams.
  return createServer({ keepAlive: true, keepAliveInitialDelay: 30_000 }, (request, response) => {
    const exchange = openExchange(request, response, logger, (outcome) => {
      logOutcome(logger, outcome);
      metrics?.end(outcome);
    });
    metrics?.begin(exchange);
    requestSpans.tracePromise(answer, { exchange }, undefined, exchange).catch((error: unknown) => {
      exchange.report(error);
      if (response.headersSent) response.destroy();
      else send(exchange, failureAt(exchange.door));
    });
  });

  async function answer(exchange: Exchange): Promise<void> {
    const { request, response, target, door } = exchange;
    if (cors(request, response)) return;
    if (door === 'rest') {
      const below = target.slice(restPath.length);
      const viewer = await viewerOf(exchange);
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      const found = viewer && isRead ? kept.find(viewer.id, below) : undefined;
      send(exchange, found ?? (await rest(exchange, below, viewer)));
    } else if (door === 'graphql') {
      await graphql(exchange, await viewerOf(exchange));
    } else {
      send(exchange, await pageAt(exchange));
    }
  }

  async function pageAt(exchange: Exchange): Promise<Answer> {
    const { path } = exchange;
    const page = path.startsWith('/docs/') ? docs : Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (!page) return textAnswer(404, `Nothing is here. Try /graphql or ${restPath}.`);
    exchange.operation = page === docs ? '/docs' : path;
    return page(exchange);
  }

  async function viewerOf({ request }: Exchange): Promise<Viewer | null> {
    const { authorization } = request.headers;
    return viewers.known(authorization) ?? viewers.authenticate(authorization);
  }
}

async function isReachable({ pool }: Database): Promise<boolean> {
  return pool.query('SELECT 1').then(
    () => true,
    () => false,
  );
}

/** The answer when even finding out who is asking failed, in the words of the door that was meant. */
function failureAt(door: Door): Answer {
  const error = messages.internal;
  if (door === 'page') return textAnswer(500, error);
  const body =
    door === 'rest'
      ? { ok: false, error }
      : { errors: [{ message: error, extensions: { code: 'INTERNAL_SERVER_ERROR' } }] };
  return jsonAnswer(500, JSON.stringify(body));
}
