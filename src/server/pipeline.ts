/**
 * The order of the steps of every request. After it, `server.ts` compresses, sends and logs the response. An operation that comes
 * through a WebSocket takes the same steps (`transportOperations.ts`). A handler makes a response or a task, and never sends one.
 */

import { createViewers, type Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { GraphqlHandler } from '../graphql/handler.ts';
import { createUserQuota } from '../graphql/userQuota.ts';
import { type Cors, createCors, forwardedMethods, usualMethods } from '../http/cors.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { createRateLimits, type RateLimits } from '../http/rateLimit.ts';
import { asksForPage, isMisaddressed, isRead } from '../http/requestChecks.ts';
import { type HttpResponse, isResponse } from '../http/response.ts';
import type { Batch } from '../http/task.ts';
import type { McpHandler } from '../mcp/mcp.ts';
import type { MirrorService } from '../mirror/service.ts';
import type { PageHandler } from '../pages/page.ts';
import type { RestProxy } from '../proxy/proxy.ts';
import type { RestHandler } from '../rest/handler.ts';
import { createAccess, rateKeyOf } from './access.ts';
import { createAuthentication } from './authentication.ts';
import { runBatch } from './batchRunner.ts';
import { createHandlers } from './handlers.ts';
import { createInnerRunner } from './innerRequests.ts';
import { cacheMaxAge, mostConnections, type Pipeline, type ServerOptions } from './options.ts';
import { createPositions, type Positions } from './positions.ts';
import { type Shed, type Shedding, tooBusy } from './shedding.ts';
import { createTaskRunner, type TaskRunner } from './taskRunner.ts';

/** The steps of a request, each made by a module of its own. */
interface Steps extends Pick<Pipeline, 'authorize'> {
  readonly config: Pick<Config, 'GRAPHIQL'>;
  readonly cors: Cors;
  readonly limitRate: RateLimits;
  readonly shed: Shed;
  /** Waits until the data here is as new as the request needs, or returns the response to a request for which it is not. */
  readonly waitUntilCurrent: (
    exchange: Exchange,
    viewer: Viewer,
  ) => Promise<HttpResponse | undefined> | undefined;
  readonly runTask: TaskRunner;
  readonly handlers: {
    readonly page: PageHandler;
    readonly graphql: GraphqlHandler;
    readonly rest: RestHandler;
    /** REST in front of an upstream; undefined where there is none. */
    readonly proxy: RestProxy | undefined;
    /** Undefined where the settings leave it out. */
    readonly mcp: McpHandler | undefined;
  };
}

function createRespond(steps: Steps): Pipeline['respond'] {
  const { handlers, runTask } = steps;

  // It awaits promises only: an `await` of anything else takes about as long as a look into the response cache.
  return async (exchange) => {
    const { endpoint } = exchange;
    if (isMisaddressed(exchange.request))
      return errorResponse(endpoint, httpErrors.badRequest, { Connection: 'close' });
    if (endpoint === 'page' || (endpoint === 'mcp' && !handlers.mcp)) return handlers.page(exchange);

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

    if (endpoint === 'rest' && handlers.proxy && viewer) return handlers.proxy(exchange, viewer);
    if (endpoint === 'mcp' && handlers.mcp) return handlers.mcp(exchange, viewer);
    const reading = (endpoint === 'graphql' ? handlers.graphql : handlers.rest)(exchange, viewer);
    const task = reading instanceof Promise ? await reading : reading;
    if (isResponse(task)) return task;
    if ('join' in task) return respondToBatch(steps, exchange, viewer, task);
    return runTask(exchange, viewer, task);
  };
}

/** The response to a preflight, or to a page that may not use the endpoint; undefined for a request that goes on. */
function checkOrigin({ config, cors }: Steps, exchange: Exchange): HttpResponse | undefined {
  const { endpoint } = exchange;
  // No other page may read GraphiQL: it contains the token of the demo account.
  const isGraphiql = endpoint === 'graphql' && config.GRAPHIQL === 'on' && asksForPage(exchange);
  const preflight = isGraphiql ? undefined : cors.respond(exchange);
  return preflight ?? (endpoint === 'mcp' ? cors.rejectForeignPage(exchange) : undefined);
}

async function respondToBatch(
  { limitRate, shed, runTask }: Steps,
  exchange: Exchange,
  viewer: Viewer | null,
  batch: Batch,
): Promise<HttpResponse> {
  // The request itself has been counted as one.
  const others = batch.size - 1;
  if (others > 0 && limitRate(exchange, rateKeyOf(viewer), others))
    return errorResponse(exchange.endpoint, httpErrors.tooManyRequests);
  if (shed(exchange, viewer)) return tooBusy(exchange);
  const parts = batch.prepare();
  if (isResponse(parts)) return parts;
  return batch.join(await runBatch(exchange, parts, async (part) => runTask(exchange, viewer, part)));
}

/** Makes the steps, and puts them together. */
export function createPipeline(options: ServerOptions, { shed, turns }: Shedding): Pipeline {
  const { config, database, feed, responseCache, mirror, replicas } = options;
  const viewers = createViewers(database.sql, feed, cacheMaxAge, replicas?.noteChange);
  const limitRate = createRateLimits(config, database.embedded ? undefined : database.pool);
  const authenticate = createAuthentication({ viewers, mirror, shed, trustedProxies: config.TRUST_PROXY });
  const authorize = createAccess({ authenticate, limitRate });
  const cors = createConfiguredCors(options);
  const connectionQuota = createUserQuota(options.mostConnections ?? mostConnections);
  const onChanged = createOnChanged(options);
  const positions = database.embedded
    ? undefined
    : createPositions(database.sql, feed, (viewerId) => {
        onChanged(viewerId);
        mirror?.noteChange(viewerId);
      });
  const runTask = createTaskRunner({ responseCache, shed, onChanged, positions });
  const handlers = createHandlers(options, { viewers, turns });
  const { page, graphql, rest, proxy, watch, hasEnded, persistedFile } = handlers;
  const run = createInnerRunner({ graphql, rest, runTask });
  const forward: RestProxy | undefined =
    proxy &&
    (async (exchange, viewer) => {
      const response = await proxy(exchange, viewer);
      if (!isRead(exchange)) await positions?.addTo(exchange, response);
      return response;
    });
  const mcp = options.additions?.createMcp?.({ config, persistedFile, hasEnded, run });
  const respond = createRespond({
    config,
    cors,
    authorize,
    limitRate,
    shed,
    waitUntilCurrent: createWaitUntilCurrent(mirror, positions),
    runTask,
    handlers: { page, graphql, rest, proxy: forward, mcp },
  });
  return { respond, authorize, watch, cors, connectionQuota };
}

function createConfiguredCors({ config, mirror, logger }: ServerOptions): Cors {
  const methods = mirror?.forwarding ? forwardedMethods : usualMethods;
  return createCors(config.CORS_ORIGINS, (message) => logger.warn(message), methods);
}

/** Makes the function to call when a viewer's data may have changed. */
function createOnChanged({ responseCache, replicas }: ServerOptions): (viewerId: number) => void {
  if (!replicas) return responseCache.invalidate;
  return (viewerId) => {
    responseCache.invalidate(viewerId);
    replicas.noteChange(viewerId);
  };
}

/** First the position that the client sends is waited for: the mirror may have to read the account since it knows of that. */
function createWaitUntilCurrent(
  mirror: MirrorService | undefined,
  positions: Positions | undefined,
): Steps['waitUntilCurrent'] {
  return (exchange, viewer) => {
    const receiving = positions?.receive(exchange, viewer);
    // What is forwarded is not read from the mirror.
    if (!mirror || (exchange.endpoint === 'rest' && mirror.forwarding)) return receiving;
    if (!receiving) return mirror.waitUntilFresh(exchange, viewer);
    return receiving.then((early) => early ?? mirror.waitUntilFresh(exchange, viewer));
  };
}
