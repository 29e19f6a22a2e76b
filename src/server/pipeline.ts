/**
 * The steps of every request, in their order. After them, `server.ts` compresses, sends and logs the response. An operation of a
 * WebSocket takes the same steps (`webSocketAccess.ts`). A handler returns a response or a task; it never sends one.
 */

import { findToken, lockViewer } from '../auth/tokens.ts';
import {
  createViewers,
  type HasEnded,
  mayBeToken,
  type Presented,
  type Viewer,
  type Viewers,
} from '../auth/viewer.ts';
import { createWatchViewer } from '../auth/watchViewer.ts';
import { createClients } from '../database/clients.ts';
import { createTurns, type RunInTurn, type Turns, withRunner } from '../database/turns.ts';
import type { TokenProblem } from '../errors.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import { addressOf } from '../http/clientAddress.ts';
import { createCors, forwardedMethods, usualMethods } from '../http/cors.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Deadlines, Exchange } from '../http/exchange.ts';
import { createRateLimits } from '../http/rateLimit.ts';
import { asksForPage, isFromLoopback, isMisaddressed, isRead } from '../http/request.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { Batch, OtherWork, Query, Task } from '../http/task.ts';
import { createUserQuota } from '../http/userQuota.ts';
import { createDemoTokenFor, untilRevoked } from '../pages/demoToken.ts';
import { createPages } from '../pages/pages.ts';
import { createProxy } from '../proxy/proxy.ts';
import { createRestHandler } from '../rest/handler.ts';
import { type Context, createContext, type UpstreamAccount } from '../schema/context.ts';
import { createInnerRunner, runBatch } from './batches.ts';
import { cacheMaxAge, type ServerOptions } from './options.ts';
import { createPositions, type Positions } from './positions.ts';

type Steps = ReturnType<typeof createSteps>;

/** How many WebSockets a user may have open in one process. */
const mostSockets = 100;

export type Pipeline = ReturnType<typeof createPipeline>;

/** Notes when the database is away. */
export interface Outages {
  /** Throws the error or, if the database is away, one that says so to the client. */
  fail(error: unknown): never;
  /** Runs a statement, and throws what `fail` does. */
  readonly watch: RunInTurn;
}

export function createPipeline(options: ServerOptions, deadlines: Deadlines, outages: Outages) {
  const steps = createSteps(options, deadlines, outages);
  return {
    ...steps,
    /** Handles a request, and returns its response without sending it. */
    respond: (exchange: Exchange) => respond(steps, exchange).catch(outages.fail),
    /** Counts the WebSockets of each user. */
    connectionQuota: createUserQuota(options.mostSockets ?? mostSockets),
  };
}

// It awaits promises only: an `await` of any other value takes about as long as a lookup in the response cache.
async function respond(steps: Steps, exchange: Exchange): Promise<HttpResponse | StreamedResponse> {
  const { endpoint } = exchange;
  if (isMisaddressed(exchange.request))
    return errorResponse(endpoint, httpErrors.badRequest, { Connection: 'close' });
  if (endpoint === 'page' || (endpoint === 'mcp' && !steps.mcp)) return steps.page(exchange);

  const early = checkOrigin(steps, exchange);
  if (early) return early;

  const authorizing = steps.authorize(exchange);
  const access = authorizing instanceof Promise ? await authorizing : authorizing;
  if (isResponse(access)) return access;
  const { viewer } = access;

  const waiting = viewer ? steps.waitUntilCurrent(exchange, viewer) : undefined;
  const outdated = waiting && (await waiting);
  if (outdated) return outdated;
  // The client of an operation may have cancelled it in the meantime.
  if (exchange.message && exchange.isOver) return errorResponse(endpoint, httpErrors.internal);

  if (endpoint === 'rest' && steps.forward && viewer) return steps.forward(exchange, viewer);
  if (endpoint === 'mcp' && steps.mcp) return steps.mcp(exchange, viewer);
  const reading = (endpoint === 'graphql' ? steps.graphql : steps.rest)(exchange, viewer);
  const task = reading instanceof Promise ? await reading : reading;
  if (isResponse(task)) return task;
  if ('join' in task) return respondToBatch(steps, exchange, viewer, task);
  return steps.runTask(exchange, viewer, task);
}

/** The response to a preflight, or to a page that may not use the endpoint; undefined for every other request. */
function checkOrigin({ hasGraphiql, cors }: Steps, exchange: Exchange): HttpResponse | undefined {
  const { endpoint } = exchange;
  // No other page may read GraphiQL: it contains the token of the demo account.
  const isGraphiql = endpoint === 'graphql' && hasGraphiql && asksForPage(exchange);
  const preflight = isGraphiql ? undefined : cors.respond(exchange);
  return preflight ?? (endpoint === 'mcp' ? cors.rejectPage(exchange, false) : undefined);
}

async function respondToBatch(
  { count, shed, runTask }: Steps,
  exchange: Exchange,
  viewer: Viewer | null,
  batch: Batch,
): Promise<HttpResponse> {
  // The request itself has been counted as one.
  const tooMany = batch.size > 1 ? count(exchange, viewer, batch.size - 1) : undefined;
  if (tooMany) return tooMany;
  if (shed(exchange, viewer)) return tooBusy(exchange);
  const parts = batch.prepare();
  if (isResponse(parts)) return parts;
  return batch.join(await runBatch(exchange, parts, async (part) => runTask(exchange, viewer, part)));
}

/** Makes the steps. */
function createSteps(options: ServerOptions, deadlines: Deadlines, outages: Outages) {
  const { config, database, feed, responseCache, mirror, replicas, logger } = options;
  const sql = withRunner(database.sql, outages.watch);
  const viewers = createViewers(sql, feed, cacheMaxAge, replicas?.noteChange);
  const access = createAccess(options, viewers, deadlines);
  function onChanged(viewerId: number): void {
    responseCache.invalidate(viewerId);
    replicas?.noteChange(viewerId);
  }
  const positions = database.embedded
    ? undefined
    : createPositions(database.sql, feed, (viewerId) => {
        onChanged(viewerId);
        mirror?.noteChange(viewerId);
      });
  const runTask = createTaskRunner({ responseCache, positions }, access.shed, onChanged);
  const handlers = createHandlers(options, viewers, access.turns, outages);
  const { proxy } = handlers;
  return {
    ...handlers,
    ...access,
    runTask,
    hasGraphiql: config.GRAPHIQL === 'on',
    cors: createCors(
      config.CORS_ORIGINS,
      (message) => logger.warn(message),
      mirror?.forwarding ? forwardedMethods : usualMethods,
    ),
    /** Undefined where the settings leave it out. */
    mcp: options.additions?.createMcp?.({ config, ...handlers, run: createInnerRunner(handlers, runTask) }),
    /** REST in front of an upstream; undefined where there is none. */
    forward:
      proxy &&
      (async (exchange: Exchange, viewer: Viewer) => {
        const response = await proxy(exchange, viewer);
        if (!isRead(exchange)) await positions?.addTo(exchange, response);
        return response;
      }),
    /**
     * Waits until the data here is as new as the request needs, or returns an error response if that cannot be. The position that
     * the client sends comes first: it may tell the mirror that it has to read the account.
     */
    waitUntilCurrent(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined {
      const isBound = exchange.request.headers['dovetail-position'] !== undefined;
      const receiving = isBound ? positions?.receive(exchange, viewer) : undefined;
      // What is forwarded is not read from the mirror.
      if (!mirror || (exchange.endpoint === 'rest' && mirror.forwarding)) return receiving;
      if (!receiving) return mirror.waitUntilFresh(exchange, viewer);
      return receiving.then((early) => early ?? mirror.waitUntilFresh(exchange, viewer));
    },
  };
}

/** The viewer, null for an anonymous client or an expired token; or the response to a client that is rejected. */
type Access = { readonly viewer: Viewer | null; readonly hasExpired: boolean } | HttpResponse;

/** The response to a rejected request. */
const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>) =>
  errorResponse(endpoint, httpErrors.tooBusy, { 'Retry-After': '1' });

/** The steps that authenticate a request, count it for the rate limit, and reject it while too many wait for the database. */
function createAccess(
  { config, database, mirror, metrics }: ServerOptions,
  viewers: Viewers,
  deadlines: Deadlines,
) {
  const tokens = mirror?.tokens;
  const limitRate = createRateLimits(config, database.embedded ? undefined : database.pool);
  const turns = createTurns(database.pool.options.max, config.MAX_WAITING);
  metrics?.watchLoad(turns.figures);

  /**
   * Rejects a request that may not begin, and begins the deadline of one that may. Must be called before a request uses the database:
   * without a viewer before the token is looked up, and with the viewer before anything is done for it. After that the request is
   * never rejected. @returns whether it was rejected.
   */
  function shed(exchange: Exchange, viewer: Viewer | null): boolean {
    if (exchange.hasBegun) return false;
    if (!turns.admit(viewer?.id ?? addressOf(exchange.request, config.TRUST_PROXY))) return true;
    exchange.hasBegun = viewer !== null;
    deadlines.begin(exchange);
    return false;
  }

  /** Counts requests. @returns the response if they are too many. */
  function count(exchange: Exchange, viewer: Viewer | null, requests?: number): HttpResponse | undefined {
    const isExceeded = limitRate(exchange, rateKeyOf(viewer), requests);
    return isExceeded ? errorResponse(exchange.endpoint, httpErrors.tooManyRequests) : undefined;
  }

  async function lookUp(exchange: Exchange): Promise<Access> {
    const { authorization } = exchange.request.headers;
    if (mayBeToken(authorization) && shed(exchange, null)) return tooBusy(exchange);
    const presented = await viewers.authenticate(authorization);
    if (presented || !tokens) return counted(exchange, presented);
    const found = await tokens.authenticate(authorization, addressOf(exchange.request, config.TRUST_PROXY));
    if ('viewer' in found) return counted(exchange, found.viewer);
    return errorResponse(exchange.endpoint, httpErrors[found.error], {
      'Retry-After': String(found.retryAfter),
    });
  }

  function counted(exchange: Exchange, presented: Presented | null): Access {
    const hasExpired = presented === 'expired';
    const found = hasExpired ? null : presented;
    const isLocal = found?.onLoopback && isFromLoopback(exchange.request, config.TRUST_PROXY);
    const viewer = isLocal ? found.onLoopback : found;
    exchange.hasViewer = viewer !== null;
    exchange.hasExpiredToken = hasExpired;
    return count(exchange, viewer) ?? { viewer, hasExpired };
  }

  return {
    /** Lets users take turns with their statements. */
    turns,
    shed,
    count,
    /**
     * Finds the viewer, and then counts the request: by its token rather than by its address, which many clients may share. A
     * request is not counted if the lookup of its token fails.
     */
    authorize(exchange: Exchange): Access | Promise<Access> {
      const { authorization } = exchange.request.headers;
      const known = viewers.known(authorization) ?? tokens?.known(authorization);
      return known ? counted(exchange, known) : lookUp(exchange);
    },
  };
}

/** The key of the rate limit. Requests with a token of the upstream count for their user: no part of that token may be stored. */
function rateKeyOf(viewer: Viewer | null): string | undefined {
  if (!viewer) return undefined;
  return viewer.tokenId === undefined ? `user ${viewer.id}` : String(viewer.tokenId);
}

/**
 * Makes a function that responds to a task from the cache, or else runs it. A cached response is sent even under overload.
 * @param onChanged called with a viewer who may have written something.
 */
export function createTaskRunner(
  { responseCache, positions }: Pick<ServerOptions, 'responseCache'> & { positions: Positions | undefined },
  shed: (exchange: Exchange, viewer: Viewer | null) => boolean,
  onChanged: (viewerId: number) => void,
) {
  async function runQuery({ run }: Query, exchange: Exchange, viewer: Viewer | null, key?: string) {
    if (viewer && key !== undefined) {
      exchange.cache = 'miss';
      return responseCache.compute(viewer.id, key, run);
    }
    const { response } = await run();
    if (viewer) responseCache.noteRead(viewer.id);
    return response;
  }

  async function runOther(work: OtherWork, exchange: Exchange, viewer: Viewer) {
    const running = work.run().finally(() => {
      // Also after a failure: a commit whose acknowledgement was lost has changed something all the same.
      if (work.mayHaveWritten) onChanged(viewer.id);
      else responseCache.noteRead(viewer.id);
    });
    const response = await running;
    if (work.mayHaveWritten) await positions?.addTo(exchange, response);
    return response;
  }

  /** @param asked the exchange whose API has the task: another one than `exchange` within a tool call. */
  return (
    exchange: Exchange,
    viewer: Viewer | null,
    task: Task,
    asked: Pick<Exchange, 'endpoint'> = exchange,
  ): HttpResponse | StreamedResponse | Promise<HttpResponse | StreamedResponse> => {
    // Both APIs may have the same keys.
    const key = viewer && task.cacheKey !== undefined ? `${asked.endpoint} ${task.cacheKey}` : undefined;
    const respond = (cached: HttpResponse | undefined) => {
      exchange.cache = cached && 'hit';
      if (cached) return cached;
      if (shed(exchange, viewer)) return tooBusy(asked);
      const work = task.prepare();
      if (work.kind === 'query') return runQuery(work, exchange, viewer, key);
      return viewer ? runOther(work, exchange, viewer) : work.run();
    };
    const cached = viewer && key !== undefined ? responseCache.get(viewer.id, key) : undefined;
    return cached instanceof Promise ? cached.then(respond) : respond(cached);
  };
}

/** How long, in milliseconds, a body may take before its token is looked up again. */
const longestTrust = 1_000;

/** Makes the handlers of the pages and of both APIs, and the watch on the tokens of viewers. */
function createHandlers(options: ServerOptions, viewers: Viewers, turns: Turns, { watch, fail }: Outages) {
  const { config, database, feed, responseCache, mirror, replicas, demoToken } = options;
  const { validUntil, isValid, hasEnded } = createTokenChecks(viewers, mirror);
  // No change is announced when a token of the upstream ends, so the gateway has to ask the upstream.
  const maxAge = Math.min(cacheMaxAge, mirror?.tokens?.maxAge ?? Number.POSITIVE_INFINITY);
  const watchViewer = createWatchViewer({ feed, viewers: { validUntil }, maxAge });
  const shownToken = createDemoTokenFor(demoToken, config);
  const demoTokenFor =
    demoToken === undefined
      ? shownToken
      : untilRevoked(shownToken, feed, async () => (await findToken(database.sql, demoToken)) !== null);
  // The statements of a mirror are on its own pool.
  const upstream: UpstreamAccount | undefined = mirror && {
    activate: (...given) => mirror.upstream.activate(...given).catch(fail),
    fetchDetails: (...given) => mirror.upstream.fetchDetails(...given).catch(fail),
  };
  const clients = createClients(database.pool, fail, mirror !== undefined);
  /** A factory of contexts whose statements take turns. Those on a standby take none: it has a pool of its own. */
  const contextsBy = (runnerFor: (userId: number) => RunInTurn) => (viewer: Viewer) => {
    const inTurn = runnerFor(viewer.id);
    const run: RunInTurn = (statement) => watch(() => inTurn(statement));
    const sql = replicas ? withRunner(replicas.sqlFor(viewer), watch) : withRunner(database.sql, run);
    const changeTokens: Context['changeTokens'] = (change) =>
      run(() =>
        clients.transact(viewer, async (prisma, connection) => {
          await lockViewer(connection, viewer);
          return change(prisma, connection);
        }),
      ).finally(() => viewers.forget(viewer.id));
    return createContext(sql, viewer, upstream, { prisma: clients.of(viewer, run), changeTokens });
  };
  const contextOf = contextsBy(turns.forRequest);
  return {
    hasEnded,
    /** Calls back, at most once, when the token of a viewer has ended. @returns what ends the watch. */
    watchToken: (viewer: Viewer, onEnded: (problem: TokenProblem) => void) =>
      watchViewer(viewer, { changed() {}, ended: onEnded }).stop,
    page: createPages(options, demoTokenFor, watch),
    ...createGraphqlHandler({
      ...options,
      createContext: contextOf,
      changes: { watchViewer, cache: responseCache, createContext: contextsBy(turns.forLiveQuery) },
      demoTokenFor,
      isValid,
      hasEnded,
      schema: options.additions?.schema,
      plugins: options.additions?.plugins,
    }),
    /** REST in front of an upstream. The response cache has the other half of the memory, for GraphQL. */
    proxy:
      mirror?.forwarding &&
      createProxy({
        accounts: mirror.forwarding,
        feed,
        lifetime: config.UPSTREAM_INTERVAL,
        maxBytes: (config.RESPONSE_CACHE_MB / 2) * 1024 * 1024,
      }),
    rest: createRestHandler({
      createContext: contextOf,
      hasEnded,
      docsPath: config.INTROSPECTION === 'on' ? '/docs' : undefined,
    }),
  };
}

/** Checks again tokens that were valid when their requests arrived. */
function createTokenChecks(viewers: Viewers, mirror: ServerOptions['mirror']) {
  async function validUntil(viewer: Viewer): Promise<number> {
    if (viewer.tokenId !== undefined) return viewers.validUntil(viewer);
    return (await mirror?.recheck(viewer)) ? Number.POSITIVE_INFINITY : 0;
  }
  const isValid = async (viewer: Viewer) => (await validUntil(viewer)) > Date.now();
  const hasEnded: HasEnded = async (exchange, viewer, began) => {
    if (performance.now() - began <= longestTrust) return false;
    const until = await validUntil(viewer);
    const isOver = until <= Date.now();
    exchange.hasExpiredToken = isOver && until > 0;
    return isOver;
  };
  return { validUntil, isValid, hasEnded };
}
