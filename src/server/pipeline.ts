/**
 * The order of the steps of every request. After it, `server.ts` compresses, sends and logs the response. An operation that comes
 * through a WebSocket takes the same steps (`webSocketAccess.ts`). A handler makes a response or a task, and never sends one.
 */

import { createViewers, type Viewer } from '../auth/viewer.ts';
import { inTurn } from '../database/turns.ts';
import { createUserQuota } from '../graphql/userQuota.ts';
import { createCors, forwardedMethods, usualMethods } from '../http/cors.ts';
import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Deadlines, Exchange } from '../http/exchange.ts';
import { asksForPage, isMisaddressed, isRead } from '../http/requestChecks.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { Batch } from '../http/task.ts';
import { createAccess, tooBusy } from './access.ts';
import type { Outages } from './availability.ts';
import { createHandlers } from './handlers.ts';
import { cacheMaxAge, type ServerOptions } from './options.ts';
import { createPositions } from './positions.ts';
import { createInnerRunner, createTaskRunner, runBatch } from './tasks.ts';

type Steps = ReturnType<typeof createSteps>;

/** How many WebSockets a user may have open in one process. */
const mostConnections = 100;

export type Pipeline = ReturnType<typeof createPipeline>;

export function createPipeline(options: ServerOptions, deadlines: Deadlines, outages: Outages) {
  const steps = createSteps(options, deadlines, outages);
  return {
    ...steps,
    /** Handles a request, and returns its response without sending it. */
    respond: (exchange: Exchange) => respond(steps, exchange).catch(outages.fail),
    /** Counts the WebSockets of each user. */
    connectionQuota: createUserQuota(options.mostConnections ?? mostConnections),
  };
}

// It awaits promises only: an `await` of anything else takes about as long as a look into the response cache.
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

/** The response to a preflight, or to a page that may not use the endpoint; undefined for a request that goes on. */
function checkOrigin({ hasGraphiql, cors }: Steps, exchange: Exchange): HttpResponse | undefined {
  const { endpoint } = exchange;
  // No other page may read GraphiQL: it contains the token of the demo account.
  const isGraphiql = endpoint === 'graphql' && hasGraphiql && asksForPage(exchange);
  const preflight = isGraphiql ? undefined : cors.respond(exchange);
  return preflight ?? (endpoint === 'mcp' ? cors.rejectForeignPage(exchange) : undefined);
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
function createSteps(options: ServerOptions, deadlines: Deadlines, { watch, fail }: Outages) {
  const { config, database, feed, responseCache, mirror, replicas, logger } = options;
  const viewers = createViewers(inTurn(database.sql, watch), feed, cacheMaxAge, replicas?.noteChange);
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
  const runTask = createTaskRunner({ ...access, responseCache, onChanged, positions });
  const handlers = createHandlers(options, { ...access, viewers, watch, fail });
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
     * Waits until the data here is as new as the request needs, or returns the response to a request for which it is not. The
     * position that the client sends comes first: the mirror may have to read the account since it knows of that.
     */
    waitUntilCurrent(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined {
      const receiving = positions?.receive(exchange, viewer);
      // What is forwarded is not read from the mirror.
      if (!mirror || (exchange.endpoint === 'rest' && mirror.forwarding)) return receiving;
      if (!receiving) return mirror.waitUntilFresh(exchange, viewer);
      return receiving.then((early) => early ?? mirror.waitUntilFresh(exchange, viewer));
    },
  };
}
