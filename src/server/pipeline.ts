/**
 * The way of every request. Each step has its file: shed early (`shedding.ts`), identify, CORS, authenticate and rate
 * limit (`access.ts`), what a mirror and positions want (`createReady`), read, then cached response, shed load and run
 * (`tasks.ts`), compress and send (`serve`), log (`createListener`). What handles a request makes a response, and never
 * sends one. An operation that comes through a socket goes the same way (`transportOperations.ts`).
 */

import { setMaxListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Logger } from 'pino';
import { createViewers, type Viewer, type Viewers } from '../auth/viewer.ts';
import { requestSpans } from '../channels.ts';
import { type Config, workersOf } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import { longestConnecting } from '../database/session.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import { createEventStreams } from '../graphql/transports/eventStreams.ts';
import type { SocketTimeouts } from '../graphql/transports/webSocket.ts';
import { createUserQuota, type UserQuota } from '../graphql/userQuota.ts';
import { formFor, streamFor } from '../http/compression.ts';
import { type Cors, createCors, relayedMethods, usualMethods } from '../http/cors.ts';
import { createDeadlines, type Deadlines } from '../http/deadlines.ts';
import { errorResponse, fail, httpErrors } from '../http/errorResponse.ts';
import {
  asksForPage,
  type Exchange,
  type ExchangeListener,
  isMisaddressed,
  openExchange,
} from '../http/exchange.ts';
import { tooBusy } from '../http/loadShedding.ts';
import { createRateLimits } from '../http/rateLimits.ts';
import { type HttpResponse, type StreamedResponse, send, sendStream } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';

import { timeouts as defaultTimeouts, type Timeouts, watchConnections } from '../http/timeouts.ts';
import { endAfterIgnoredOffers, GatewayRequest } from '../http/upgrade.ts';
import { longestActivation } from '../mirror/activation.ts';
import type { MirrorService } from '../mirror/service.ts';
import { createDemoTokenFor } from '../pages/demoToken.ts';
import { createPages } from '../pages/pages.ts';
import { createRestHandler } from '../rest/handler.ts';
import { createContext } from '../schema/context.ts';
import { createWatchViewer } from '../schema/subscriptions.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createRequestLog } from '../telemetry/requestLog.ts';
import { type Access, createAccess, rateKeyOf } from './access.ts';
import { createAuthentication, type Shed } from './authentication.ts';
import { runBatch } from './batchRunner.ts';
import { createInnerRunner, outcomeOf } from './innerRequests.ts';
import type { OptionalFeatures } from './optionalFeatures.ts';
import { createPositions, type Positions } from './positions.ts';
import { createReadiness } from './readiness.ts';
import { createShedding } from './shedding.ts';
import { createTaskRunner } from './taskRunner.ts';
import { createOpenOperation, createOperations, type OpenOperation } from './transportOperations.ts';
import { createUpgrades } from './upgrades.ts';

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
  /** The same for the clients of WebSockets. */
  socketTimeouts?: Partial<SocketTimeouts>;
  /** How long, in milliseconds, it may take until it is anybody's turn, before there is overload, if not as long as usual. */
  longestWait?: number;
  /** How many WebSockets may not have said who they are, if not as many as usual. */
  mostUnknown?: number;
  /** For a database that mirrors accounts. */
  mirror?: MirrorService | undefined;
  /** What only some gateways have. */
  additions?: OptionalFeatures | undefined;
  /** For a database that has standbys to read from. */
  replicas?: Replicas | undefined;
}

export interface Pipeline {
  /** Makes of a request what the client gets. */
  respond(exchange: Exchange): Promise<HttpResponse | StreamedResponse>;
  /** Says who asks, and counts that they did; or responds to who may not go on. */
  authorize(exchange: Exchange): Access | Promise<Access>;
  /** Calls back, at most once, when the token that the viewer came with has ended. Returns what ends the watch. */
  watch(viewer: Viewer, onEnded: () => void): () => void;
  readonly cors: Cors;
  /** The WebSockets and event streams that each user has. */
  readonly places: UserQuota;
}

export function createGatewayServer(options: ServerOptions): Server {
  const { config, metrics, closing, timeouts = defaultTimeouts } = options;
  const compresses = config.COMPRESSION === 'on';
  // Every stream waits for it: many of them are no leak.
  setMaxListeners(0, closing);
  const deadlines = createRequestDeadlines(options);
  const listener = createListener(options, deadlines);
  const open = createOpenOperation(listener, metrics);
  const { shed, turnAway } = createShedding(options, deadlines);
  const pipeline = createPipeline(options, open, shed);

  const handle = endAfterIgnoredOffers((request, response) => {
    if (turnAway(request, response, connections.latest(request.socket)))
      return connections.sentEarly(request, response);
    const exchange = openExchange(request, response, listener);
    connections.begin(exchange);
    metrics?.begin(exchange);
    requestSpans.tracePromise(serve, { exchange }, undefined, exchange).catch((error: unknown) => {
      exchange.report(error);
      if (response.headersSent) response.destroy();
      else send(exchange, errorResponse(exchange.endpoint, httpErrors.internal));
    });
  });
  const server = createServer(
    {
      IncomingMessage: GatewayRequest,
      // Probes find clients that are gone without a word, such as the readers of idle streams.
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // Asked for in the pipeline, in words of our own.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(timeouts.head, 1_000),
    },
    handle,
  );
  const connections = watchConnections(server, timeouts, closing);
  // Nothing but `100-continue` is known, and what else a client expects need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  const upgrade = createUpgrades({
    ...pipeline,
    ...options,
    listener,
    operations: createOperations(pipeline, open, deadlines.end),
    timeouts: options.socketTimeouts,
    longestMessage: config.MAX_BODY_KB * 1024,
  });
  server.on('upgrade', (request, socket, head) =>
    connections.letGo(socket, () => upgrade(request, socket, head)),
  );
  return server;

  async function serve(exchange: Exchange): Promise<void> {
    const response = await pipeline.respond(exchange);
    if ('stream' in response)
      return sendStream(exchange, compresses ? streamFor(exchange, response) : response, closing);
    const form = compresses ? formFor(exchange, response) : response;
    send(exchange, form instanceof Promise ? await form : form);
  }
}

function createListener({ logger, metrics }: ServerOptions, deadlines: Deadlines): ExchangeListener {
  const log = createRequestLog(logger);
  return {
    failed: ({ id }, error) => logger.error({ request: id, err: error }, 'request failed'),
    ended(outcome) {
      deadlines.end(outcome.exchange);
      log(outcome);
      metrics?.end(outcome);
    },
  };
}

function createPipeline(options: ServerOptions, open: OpenOperation, shed: Shed): Pipeline {
  const { config, database, feed, logger, mirror } = options;
  const viewers = createViewers(database.sql, feed, config.CACHE_MAX_AGE, options.replicas?.noteChange);
  const methods = mirror?.tokens && config.RELAY === 'on' ? relayedMethods : usualMethods;
  const cors = createCors(config.CORS_ORIGINS, (message) => logger.warn(message), methods);
  const limitRate = createRateLimits(config, database);
  const identify = createAuthentication({ viewers, mirror, shed, trustedProxies: config.TRUST_PROXY });
  const places = createUserQuota(config.MAX_CONNECTIONS);
  const { page, graphql, rest, watch, persistedFile } = createHandlers(options, { viewers, places, open });
  const { runTask, ready } = createRunning(options, shed);
  const run = createInnerRunner({ graphql, rest, runTask });
  const mcp = options.additions?.createMcp?.({ config, persistedFile, run });
  const authorize = createAccess({ identify, limitRate });

  // Only what is not there is waited for: each wait takes about as long as to look a cached response up.
  async function respond(exchange: Exchange): ReturnType<Pipeline['respond']> {
    const { request, endpoint } = exchange;
    if (isMisaddressed(request)) return fail(exchange, 'badRequest', { Connection: 'close' });
    if (endpoint === 'page' || (endpoint === 'mcp' && !mcp)) return page(exchange);
    // Not for GraphiQL: the token of the demo account stands in it.
    const isGraphiql = endpoint === 'graphql' && config.GRAPHIQL === 'on' && asksForPage(exchange);
    const preflight = isGraphiql ? undefined : cors.respond(exchange);
    if (preflight) return preflight;
    const foreign = endpoint === 'mcp' ? cors.rejectForeignPage(exchange) : undefined;
    if (foreign) return foreign;
    const entering = authorize(exchange);
    const entered = entering instanceof Promise ? await entering : entering;
    if ('status' in entered) return entered;
    const { viewer } = entered;
    const readying = viewer ? ready(exchange, viewer) : undefined;
    const early = readying && (await readying);
    if (early) return early;
    // An operation whose client wants it no more is not begun.
    if (exchange.message && exchange.isOver) return fail(exchange, 'internal');

    if (endpoint === 'mcp' && mcp) return mcp(exchange, viewer);
    const reading = (endpoint === 'graphql' ? graphql : rest)(exchange, viewer);
    const task = reading instanceof Promise ? await reading : reading;
    if ('status' in task) return task;
    if ('join' in task) {
      // One was counted before it was known that there are more.
      const others = task.size - 1;
      if (others > 0 && limitRate(exchange, rateKeyOf(viewer), others))
        return fail(exchange, 'tooManyRequests');
      if (await shed(exchange, viewer, task.size)) return tooBusy(exchange);
      const parts = task.prepare();
      if ('status' in parts) return parts;
      return task.join(await runBatch(exchange, parts, async (part) => runTask(exchange, viewer, part)));
    }
    return task.deliver
      ? task.deliver(await outcomeOf(exchange, () => runTask(exchange, viewer, task)))
      : runTask(exchange, viewer, task);
  }

  return { respond, authorize, watch, cors, places };
}

/** What is to be told of a viewer whose data has changed. */
function createOnChanged({ responseCache, replicas }: ServerOptions): (viewerId: number) => void {
  if (!replicas) return responseCache.invalidate;
  return (viewerId) => {
    responseCache.invalidate(viewerId);
    replicas.noteChange(viewerId);
  };
}

/** What runs tasks, and what has to be so before a request becomes one. */
function createRunning(options: ServerOptions, shed: Shed) {
  const { database, feed, responseCache, mirror } = options;
  const onChanged = createOnChanged(options);
  const positions = database.embedded ? undefined : createPositions(database.sql, feed, onChanged);
  return {
    runTask: createTaskRunner({ responseCache, shed, onChanged, positions }),
    ready: createReady(mirror, positions),
  };
}

/** Waits until what is here is as new as the request needs it, or responds to one for which it is not. */
function createReady(mirror: MirrorService | undefined, positions: Positions | undefined) {
  return (exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined => {
    const receive = () => positions?.receive(exchange, viewer);
    return mirror ? mirror.waitUntilFresh(exchange, viewer).then((early) => early ?? receive()) : receive();
  };
}

function createRequestDeadlines({ config, mirror }: ServerOptions): Deadlines {
  const longest = config.STATEMENT_TIMEOUT * 1_000 + longestConnecting + (mirror ? longestActivation : 0);
  return createDeadlines(longest, (exchange) => {
    exchange.report(new Error(`there was no response after ${longest} ms`));
    const response = errorResponse(exchange.endpoint, httpErrors.internal);
    if (exchange.message) exchange.message.cutShort(response);
    else send(exchange, response);
  });
}

interface HandlersOptions {
  readonly viewers: Viewers;
  readonly places: UserQuota;
  readonly open: OpenOperation;
}

/** What handles requests: the pages and both APIs. */
function createHandlers(
  {
    config,
    database,
    feed,
    responseCache,
    demoToken,
    mirror,
    replicas,
    logger,
    closing,
    additions,
  }: ServerOptions,
  { viewers, places, open }: HandlersOptions,
) {
  // Tokens of the upstream have to be asked about there, which nothing announces.
  const maxAge = Math.min(config.CACHE_MAX_AGE, mirror?.tokens?.maxAge ?? Number.POSITIVE_INFINITY);
  const isValid = async (viewer: Viewer) =>
    viewer.tokenId === undefined ? ((await mirror?.isValid(viewer)) ?? false) : viewers.isValid(viewer);
  const changes = {
    watchViewer: createWatchViewer({ feed, viewers: { isValid }, maxAge }),
    versions: responseCache,
  };
  const demoTokenFor = createDemoTokenFor(demoToken, config);
  const contextOf = (viewer: Viewer) =>
    createContext(replicas?.sqlFor(viewer) ?? database.sql, viewer, mirror?.upstream);
  const watch = (viewer: Viewer, onEnded: () => void) =>
    changes.watchViewer(viewer, { changed() {}, ended: onEnded }).stop;
  const isOnlyProcess = workersOf(config) === 1;
  const eventStreams = createEventStreams({
    operations: { begin: open, watch },
    places,
    isOnlyProcess,
    closing,
  });
  return {
    watch,
    page: createPages({ config, demoTokenFor, readiness: createReadiness(database, feed, mirror?.status) }),
    ...createGraphqlHandler({
      config,
      createContext: contextOf,
      changes,
      demoTokenFor,
      isValid,
      eventStreams,
      logger,
      closing,
      schema: additions?.schema,
    }),
    rest: createRestHandler({
      createContext: contextOf,
      relayFor: mirror?.relayFor,
      docsPath: config.INTROSPECTION === 'on' ? '/docs' : undefined,
    }),
  };
}
