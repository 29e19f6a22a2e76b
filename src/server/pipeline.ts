/** The HTTP server: finds out who is asking, and shows each request to its door. */

import { createServer, type RequestListener, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createAdmission, createLimits } from '../auth/authenticate.ts';
import { type HttpResponse, send, textResponse } from '../http/response.ts';
import { createViewers, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config.ts';
import { type Timeouts, timeouts as defaultTimeouts, watchConnections } from '../http/timeouts.ts';
import { createContext, type UpstreamAccount } from '../schema/context.ts';
import { createCors } from '../http/cors.ts';
import { type Database, longestConnecting } from '../database/database.ts';
import type { ChangeFeed } from '../database/changeFeed.ts';
import {
  asksForPage,
  type Exchange,
  isMisaddressed,
  logOutcome,
  openExchange,
  restPath,
} from '../http/exchange.ts';
import { createLoadShedder } from '../http/loadShedding.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import { createFollow } from '../schema/subscriptions.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createDemoTokenFor } from '../pages/demoToken.ts';
import { homePage } from '../pages/home.ts';
import type { Page } from '../pages/page.ts';
import { httpErrors, errorResponse } from '../http/errorResponse.ts';
import { createRestHandler } from '../rest/handler.ts';
import { printedSchema } from '../schema/schema.ts';
import { requestSpans } from '../channels.ts';
import { longestActivation } from '../mirror/activation.ts';

export interface ServerOptions {
  config: Config;
  database: Database;
  feed: ChangeFeed;
  responseCache: ResponseCache;
  logger: Logger;
  metrics?: Metrics | undefined;
  demoToken: string | undefined;
  /** Aborted when the gateway closes. */
  closing: AbortSignal;
  /** How long clients are waited for, if not as long as usual. */
  timeouts?: Timeouts;
  /** For a database that mirrors an account: where it lives, and how fresh the mirror is. */
  mirror?: { readonly upstream: UpstreamAccount; status(): string } | undefined;
}

export function createGatewayServer(options: ServerOptions): Server {
  const { config, database, feed, responseCache, logger, metrics, demoToken, closing, mirror } = options;
  const { timeouts = defaultTimeouts } = options;
  const viewers = createViewers(database.sql, feed, config.CACHE_MAX_AGE);
  const following = { feed, viewers, maxAge: config.CACHE_MAX_AGE };
  const gate = createLoadShedder(database.pool, {
    maxWaiting: config.MAX_WAITING,
    longest: config.STATEMENT_TIMEOUT * 1_000 + longestConnecting + (mirror ? longestActivation : 0),
  });
  const admit = createAdmission(viewers, createLimits(config, database), gate);
  const handlerOptions = {
    responseCache,
    createContext: (viewer: Viewer) =>
      createContext(database.sql, viewer, createFollow(following, viewer), mirror?.upstream),
  };
  const rest = createRestHandler(handlerOptions);
  const demoTokenFor = createDemoTokenFor(demoToken, config);
  const graphql = createGraphqlHandler({ ...handlerOptions, gate, config, demoTokenFor, closing });
  const cors = createCors(config.CORS_ORIGINS);

  /** Loaded for the first who asks: most gateways are never asked for their reference. */
  let loadedDocs: Promise<Page> | undefined;
  const docs: Page = async (exchange) => {
    loadedDocs ??= import('../pages/docs.ts').then(({ createDocs }) => createDocs(demoTokenFor));
    return (await loadedDocs)(exchange);
  };

  /** One look at the database answers all who ask meanwhile: nobody has to have a token to ask. */
  let checking: Promise<boolean> | undefined;

  /** What is neither door: pages and probes, by path. */
  const pages = new Map<string, Page>([
    ['/', (exchange) => homePage(exchange, demoTokenFor(exchange.request), hasPage)],
    ['/healthz', () => textResponse(200, 'alive')],
    ['/readyz', readiness],
  ]);
  if (config.INTROSPECTION === 'on') {
    pages.set('/openapi.json', docs).set('/docs', docs);
    pages.set('/schema.graphql', () => textResponse(200, printedSchema()));
  }

  async function readiness(): Promise<HttpResponse> {
    checking ??= isReachable(database).finally(() => {
      checking = undefined;
    });
    const ready = await checking;
    const lines = [ready ? 'ready' : 'the database cannot be reached'];
    if (!feed.listening) lines.push('change feed: not heard; nothing is cached');
    // Told, but no reason to be unready: without its upstream the mirror still answers.
    if (mirror) lines.push(`upstream: ${mirror.status()}`);
    return textResponse(ready ? 200 : 503, lines.join('\n'));
  }

  const handle: RequestListener = (request, response) => {
    const exchange = openExchange(request, response, logger, (outcome) => {
      logOutcome(logger, outcome);
      metrics?.end(outcome);
    });
    connections.begin(exchange);
    metrics?.begin(exchange);
    requestSpans.tracePromise(respond, { exchange }, undefined, exchange).catch((error: unknown) => {
      exchange.report(error);
      if (response.headersSent) response.destroy();
      else send(exchange, errorResponse(exchange.endpoint, httpErrors.internal));
    });
  };
  const server = createServer(
    {
      // Probes find clients that are gone without a word, such as the readers of idle streams.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // Asked for below, in words of our own.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(timeouts.head, 1_000),
    },
    handle,
  );
  const connections = watchConnections(server, timeouts, closing);
  // Nothing but `100-continue` is known, and what else a client expects need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  return server;

  async function respond(exchange: Exchange): Promise<void> {
    const { request, response, target, endpoint } = exchange;
    if (isMisaddressed(request))
      return send(exchange, errorResponse(endpoint, httpErrors.badRequest, { Connection: 'close' }));
    // Not for pages: the token of the demo account stands in them.
    if (endpoint !== 'page' && !asksForPage(exchange) && cors(request, response)) return;
    if (endpoint === 'page') return send(exchange, await pageAt(exchange));

    const admission = await admit(exchange);
    if ('refusal' in admission) return send(exchange, errorResponse(endpoint, admission.refusal));
    const { viewer } = admission;
    if (endpoint === 'graphql') return graphql(exchange, viewer);
    const below = target.slice(restPath.length);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const found = viewer && isRead ? responseCache.find(viewer.id, below) : undefined;
    if (found) return send(exchange, found);
    if (!gate(exchange)) return send(exchange, errorResponse(endpoint, httpErrors.tooBusy));
    send(exchange, await rest(exchange, below, viewer));
  }

  function hasPage(path: string): boolean {
    return path === '/graphql' ? config.GRAPHIQL === 'on' : pages.has(path);
  }

  async function pageAt(exchange: Exchange): Promise<HttpResponse> {
    const { path } = exchange;
    const page = pages.get(path.startsWith('/docs/') ? '/docs' : path);
    if (!page) return textResponse(404, `Nothing is here. Try /graphql or ${restPath}.`);
    exchange.operation = page === docs ? '/docs' : path;
    return page(exchange);
  }
}

/** How long, in milliseconds, the database may take to say that it is there. */
const probeTimeout = 2_000;

async function isReachable({ pool }: Database): Promise<boolean> {
  const answered = pool.query('SELECT 1').then(
    () => true,
    () => false,
  );
  return Promise.race([answered, sleep(probeTimeout, false, { ref: false })]);
}
