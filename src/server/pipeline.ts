/**
 * The steps of every request, in their order. After them, `server.ts` compresses, sends and logs the response. An operation of a
 * WebSocket takes the same steps. A handler returns a response or a task; it never sends one.
 */

import { allows, type Scope } from '../auth/scopes.ts';
import { lockViewer } from '../auth/tokens.ts';
import {
  createViewers,
  hasExpired,
  type Presented,
  type Recheck,
  unauthorized,
  type Viewer,
  type Viewers,
  wellFormedTokenIn,
} from '../auth/viewer.ts';
import { createWatchViewer } from '../auth/watchViewer.ts';
import type { Config } from '../config/config.ts';
import { createClients } from '../database/clients.ts';
import { inTransaction } from '../database/transaction.ts';
import { type RunInTurn, withRunner } from '../database/turns.ts';
import { beyondScope, type TokenProblem, unauthenticated } from '../errors.ts';
import type { Access, EndpointHook, PipelineParts } from '../extensionPoints.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import { addressOf } from '../http/clientAddress.ts';
import type { Timeouts } from '../http/connections.ts';
import { createCors, forwardedMethods, usualMethods } from '../http/cors.ts';
import { errorResponse, httpErrors, tooManyRequests } from '../http/errorResponse.ts';
import type { Deadlines, Endpoint, Exchange } from '../http/exchange.ts';
import { createRateLimits } from '../http/rateLimit.ts';
import { ambiguityOf, asksForPage, isFromLoopback, isRead } from '../http/request.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import { formFor } from '../http/send.ts';
import type { OtherWork, Query, Task, Work } from '../http/task.ts';
import { createPages } from '../pages/pages.ts';
import { createRestHandler } from '../rest/handler.ts';
import { type Context, createContext, type OperationHooks } from '../schema/context.ts';
import { createLiveReads } from '../schema/liveReads.ts';
import type { JoinedHooks, ServingParts } from './hooks.ts';

/** How long, in seconds, responses and valid tokens are cached at most, even if no change is announced. */
export const cacheMaxAge = 300;

export interface ServerOptions extends ServingParts {
  readonly config: Config;
  /** Aborted when the gateway is about to close: `/readyz` fails from then on. */
  readonly stopping?: AbortSignal;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
  /** How long the server waits for clients. By default the usual timeouts. */
  readonly timeouts?: Timeouts;
  /** How many connections there may be. By default as many as the limits of the process allow. */
  readonly maxConnections?: number;
  /** What extensions do. */
  readonly hooks: JoinedHooks;
}

type Steps = ReturnType<typeof createSteps>;

type Follow = NonNullable<Task['follow']>;

/** Throws the error or, if the database is away, one that says so to the client. */
export type Fail = (error: unknown) => never;

export function createPipeline(options: ServerOptions, deadlines: Deadlines, fail: Fail) {
  const steps = createSteps(options, deadlines, fail);
  return {
    ...steps,
    /** Handles a request, and returns its response without sending it. */
    respond: (exchange: Exchange) => respond(steps, exchange).catch(fail),
  };
}

// It awaits promises only: an `await` of any other value takes about as long as a lookup in the response cache.
async function respond(steps: Steps, exchange: Exchange): Promise<HttpResponse | StreamedResponse> {
  const { endpoint } = exchange;
  const message = ambiguityOf(exchange.request);
  if (message !== undefined)
    return errorResponse(endpoint, { ...httpErrors.badRequest, message }, { Connection: 'close' });
  if (endpoint === 'page') return steps.page(exchange);

  const early = checkOrigin(steps, exchange);
  if (early) return early;

  const authorizing = steps.authorize(exchange);
  const access = authorizing instanceof Promise ? await authorizing : authorizing;
  if (isResponse(access)) return access;
  let { viewer } = access;

  const waiting = viewer && steps.waitUntilCurrent?.(exchange, viewer);
  const outdated = waiting && (await waiting);
  if (outdated) return outdated;
  if (waiting && viewer) viewer = await steps.recheck(exchange, viewer);
  // The client of an operation may have cancelled it in the meantime.
  if (exchange.message && exchange.isOver) return errorResponse(endpoint, httpErrors.internal);

  if (endpoint === 'rest' && steps.handleElsewhere && viewer) return steps.handleElsewhere(exchange, viewer);
  const own = steps.ownHandlers.get(endpoint);
  if (own) return own(exchange, viewer);
  const reading = (endpoint === 'graphql' ? steps.graphql : steps.rest)(exchange, viewer);
  const task = reading instanceof Promise ? await reading : reading;
  if (isResponse(task)) return task;
  const running = steps.runTask(exchange, viewer, task);
  return task.follow ? steps.follow(exchange, await running, task.follow) : running;
}

/** The response to a preflight, or to a page that may not use the endpoint; undefined for every other request. */
function checkOrigin(
  { hasGraphiql, namesOrigins, cors }: Steps,
  exchange: Exchange,
): HttpResponse | undefined {
  const { endpoint, request } = exchange;
  // It does not come from a page of another origin.
  if (request.headers.origin === undefined && !namesOrigins) return undefined;
  // No other page may read GraphiQL: it may contain a token that pages show.
  const isGraphiql = endpoint === 'graphql' && hasGraphiql && asksForPage(exchange);
  const preflight = isGraphiql ? undefined : cors.respond(exchange);
  return preflight ?? (typeof endpoint === 'object' ? cors.rejectPage(exchange, false) : undefined);
}

function createSteps(options: ServerOptions, deadlines: Deadlines, fail: Fail) {
  const { config, database, feed, responseCache, hooks, logger } = options;
  const { handleRest } = hooks;
  const sql = withRunner(database.sql, (statement) => statement().catch(fail));
  const viewers = createViewers(sql, feed, cacheMaxAge, (viewerId) => hooks.changed?.(viewerId, false));
  const access = createAccess(options, viewers, deadlines);
  function onChanged(viewerId: number): void {
    responseCache.invalidate(viewerId);
    hooks.changed?.(viewerId, false);
  }
  const runTask = createTaskRunner({ responseCache, hooks }, access.shed, onChanged);
  const handlers = createHandlers(options, viewers, fail);
  const parts: PipelineParts = {
    persisted: hooks.persisted,
    recheck: handlers.recheck,
    run: createInnerRunner(handlers, runTask),
  };
  return {
    ...handlers,
    ...access,
    runTask,
    async follow(exchange: Exchange, current: HttpResponse | StreamedResponse, follow: Follow) {
      deadlines.end(exchange);
      return 'stream' in current ? current : follow(current);
    },
    hasGraphiql: config.GRAPHIQL === 'on',
    namesOrigins: config.CORS_ORIGINS !== undefined,
    cors: createCors(config, (message) => logger.warn(message), handleRest ? forwardedMethods : usualMethods),
    /** The handlers of the endpoints of extensions. */
    ownHandlers: new Map<Endpoint, ReturnType<EndpointHook['createHandler']>>(
      hooks.endpoints.map((endpoint) => [endpoint, endpoint.createHandler(parts)]),
    ),
    /** REST that an extension handles; undefined where none does. */
    handleElsewhere:
      handleRest &&
      (async (exchange: Exchange, viewer: Viewer) => {
        const response = await handleRest(exchange, viewer, handlers.recheck);
        if (!isRead(exchange)) await hooks.afterWrite?.(exchange, response);
        // It may be the response to another request, for which this one has waited.
        else if (!(await handlers.recheck(exchange, viewer))) return unauthorized(exchange);
        return response;
      }),
    /** Waits until the data here is as new as the request needs, or returns an error response if that cannot be. */
    waitUntilCurrent: hooks.beforeRead,
  };
}

/**
 * Makes a function that runs the REST or GraphQL request of a tool call. The pipeline has already authorized the call, so the
 * request is looked up in the cache, shed and run as if it had come by itself.
 */
const createInnerRunner =
  ({ graphql, rest }: ReturnType<typeof createHandlers>, runTask: RunTask): PipelineParts['run'] =>
  async (outer, inner, viewer) => {
    const task = await (inner.endpoint === 'graphql' ? graphql : rest)(inner, viewer);
    if (isResponse(task)) return task;
    return runTask(outer, viewer, task, inner);
  };

/** The response to a rejected request. */
const tooBusy = ({ endpoint }: Pick<Exchange, 'endpoint'>) =>
  errorResponse(endpoint, httpErrors.tooBusy, { 'Retry-After': '1' });

/** The steps that authenticate a request, count it for the rate limit, and reject it while too many wait for the database. */
function createAccess(
  { config, database, hooks, turns }: ServerOptions,
  viewers: Viewers,
  deadlines: Deadlines,
) {
  const { tokens } = hooks;
  const limitRate = createRateLimits(config, database.embedded ? undefined : database.pool);

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

  /** Counts the request. @returns the response if there are too many. */
  function count(exchange: Exchange, viewer: Viewer | null): HttpResponse | undefined {
    const retryAfter = limitRate(exchange, rateKeyOf(viewer));
    return retryAfter === undefined
      ? undefined
      : errorResponse(exchange.endpoint, tooManyRequests(retryAfter));
  }

  async function lookUp(exchange: Exchange): Promise<Access> {
    const { authorization } = exchange.request.headers;
    if (wellFormedTokenIn(authorization) !== undefined && shed(exchange, null)) return tooBusy(exchange);
    const presented = await viewers.authenticate(authorization);
    if (presented || !tokens) return counted(exchange, presented);
    const found = await tokens.authenticate(authorization, addressOf(exchange.request, config.TRUST_PROXY));
    if ('viewer' in found) return counted(exchange, found.viewer);
    return errorResponse(exchange.endpoint, found.error, {
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
    shed,
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

/** The key of the rate limit. Requests with a token of another service count for their user: no part of that token may be stored. */
function rateKeyOf(viewer: Viewer | null): string | undefined {
  if (!viewer) return undefined;
  return viewer.tokenId === undefined ? `user ${viewer.id}` : String(viewer.tokenId);
}

type RunTask = ReturnType<typeof createTaskRunner>;

/**
 * Makes a function that responds to a task from the cache, or else runs it. A cached response is sent even under overload.
 * @param onChanged called with a viewer who may have written something.
 */
export function createTaskRunner(
  { responseCache, hooks }: Pick<ServerOptions, 'responseCache' | 'hooks'>,
  shed: (exchange: Exchange, viewer: Viewer | null) => boolean,
  onChanged: (viewerId: number) => void,
) {
  async function runQuery({ run }: Query, exchange: Exchange, viewer: Viewer | null, key?: string) {
    if (viewer && key !== undefined) {
      exchange.cache = 'miss';
      return responseCache.compute(viewer.id, key, run, viewer);
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
    if (work.mayHaveWritten) await hooks.afterWrite?.(exchange, response);
    return response;
  }

  /** @param asked the exchange whose API has the task: another one than `exchange` within a tool call. */
  return (
    exchange: Exchange,
    viewer: Viewer | null,
    task: Task,
    asked: Pick<Exchange, 'endpoint'> = exchange,
  ) => {
    // Both APIs may have the same keys.
    const key = viewer && task.cacheKey !== undefined ? `${asked.endpoint} ${task.cacheKey}` : undefined;
    const respond = (cached: HttpResponse | undefined) => {
      exchange.cache = cached && 'hit';
      if (cached) return cached;
      if (shed(exchange, viewer)) return tooBusy(asked);
      const work = task.prepare();
      return work instanceof Promise ? work.then(run) : run(work);
    };
    const run = (work: Work) => {
      if (work.kind === 'query') return runQuery(work, exchange, viewer, key);
      return viewer ? runOther(work, exchange, viewer) : work.run();
    };
    const cached = viewer && key !== undefined ? responseCache.get(viewer.id, key) : undefined;
    return cached instanceof Promise ? cached.then(respond) : respond(cached);
  };
}

/** For live queries, which `watchViewer` ends. */
const unguarded: RunInTurn = (statement) => statement();

/** Makes the handlers of the pages and of both APIs, and the watch on the tokens of viewers. */
function createHandlers(options: ServerOptions, viewers: Viewers, fail: Fail) {
  const { config, feed, turns, responseCache, hooks } = options;
  const { findAgain, isValid, recheck, guard } = createTokenChecks(viewers, hooks);
  const maxAge = Math.min(cacheMaxAge, hooks.tokens?.maxAge ?? Number.POSITIVE_INFINITY);
  const watchViewer = createWatchViewer({ feed, viewers: { findAgain }, maxAge });
  const tokenFor = hooks.shownToken?.for ?? (() => undefined);
  const contextsBy = createContexts(options, viewers, fail, guard);
  const contextOf = contextsBy(turns.forRequest);
  const live = createLiveReads({
    ...options,
    watchViewer,
    isValid,
    cache: responseCache,
    createContext: contextsBy(turns.forLiveQuery, unguarded),
  });
  return {
    recheck,
    /** Calls back, at most once, when the token of a viewer has ended. @returns what ends the watch. */
    watchToken: (viewer: Viewer, onEnded: (problem: TokenProblem) => void) =>
      watchViewer(viewer, { changed() {}, ended: onEnded }).stop,
    page: createPages({ ...options, ...hooks }, tokenFor),
    graphql: createGraphqlHandler({
      ...options,
      ...hooks,
      createContext: contextOf,
      live,
      tokenFor,
      recheck,
    }),
    rest: createRestHandler({
      createContext: contextOf,
      recheck,
      follow: hooks.createFollower?.({
        live,
        recheck,
        formFor: config.COMPRESSION === 'on' ? formFor : (_, response) => response,
      }),
    }),
  };
}

/** Returns a factory of contexts whose statements take turns. Those of an extension take none: it has connections of its own. */
function createContexts(
  { database, hooks }: ServerOptions,
  viewers: Viewers,
  fail: Fail,
  guard: (viewer: Viewer, needed: Scope) => RunInTurn,
) {
  const { elsewhere, compile } = hooks;
  const watch: RunInTurn = (statement) => statement().catch(fail);
  const forOperation: OperationHooks = {
    compile,
    // Its statements are not among those that are watched.
    elsewhere: elsewhere && {
      activate: (viewer, id, activateHere) =>
        elsewhere.activate(viewer, id, activateHere, guard(viewer, 'activate')).catch(fail),
      wrapSql: elsewhere.wrapSql,
      incomplete: elsewhere.incomplete,
    },
  };
  const clientOf = createClients(database.pool, fail, elsewhere?.incomplete);
  return (runnerFor: (userId: number) => RunInTurn, reading?: RunInTurn) => (viewer: Viewer) => {
    const inTurn = runnerFor(viewer.id);
    let guarded = reading ?? guard(viewer, 'read');
    // What is seen of tokens depends on the scope that the request came with.
    let seeing = reading ?? guard(viewer, viewer.scope);
    const writing = guard(viewer, 'activate');
    /** Takes a turn, and then asks the guard, since the statement may have waited. */
    const taking =
      (guardNow: () => RunInTurn): RunInTurn =>
      (statement) =>
        watch(() => inTurn(() => guardNow()(statement)));
    const runSeeing = taking(() => seeing);
    const other = hooks.sqlFor?.(viewer, (statement, isWrite) => (isWrite ? writing : guarded)(statement));
    const sql = other
      ? withRunner(other, watch)
      : withRunner(
          database.sql,
          taking(() => guarded),
          taking(() => writing),
        );
    const runClient: RunInTurn = other
      ? (operation) => watch(() => other.onPrimary(() => runSeeing(operation)))
      : runSeeing;
    const changeTokens: Context['changeTokens'] = async (change, endsOwn) => {
      try {
        const changed = await runClient(() =>
          inTransaction(database.pool, async (connection) =>
            change(connection, await lockViewer(connection, viewer)),
          ),
        );
        // The payload is that of the end of this token.
        if (endsOwn) guarded = seeing = unguarded;
        return changed;
      } finally {
        viewers.forget(viewer.id);
      }
    };
    return createContext(elsewhere?.wrapSql(viewer, sql, watch) ?? sql, viewer, forOperation, {
      prisma: clientOf(viewer, runClient),
      changeTokens,
    });
  };
}

/** Checks again tokens that were valid when their requests arrived. */
function createTokenChecks(viewers: Viewers, { tokens }: Pick<JoinedHooks, 'tokens'>) {
  async function findAgain(viewer: Viewer): Promise<Viewer | null> {
    if (viewer.tokenId !== undefined) return viewers.findAgain(viewer);
    return (await tokens?.recheck(viewer)) ? viewer : null;
  }
  const isValid = async (viewer: Viewer) => {
    const found = await findAgain(viewer);
    return found !== null && !hasExpired(found);
  };
  const recheck: Recheck = (exchange, viewer) => {
    if (viewer.tokenId === undefined) {
      if (tokens?.known(exchange.request.headers.authorization) === viewer) return viewer;
      return findAgain(viewer);
    }
    const noted = (found: Presented | null) => {
      exchange.hasExpiredToken = found === 'expired';
      return found === 'expired' ? null : found;
    };
    const found = viewers.recheck(viewer);
    return found instanceof Promise ? found.then(noted) : noted(found);
  };

  /**
   * Makes a function that runs what needs a scope of the viewer's token: each statement or request may have waited for its turn. It throws
   * at once if the token is known to have ended.
   */
  function guard(viewer: Viewer, needed: Scope): RunInTurn {
    function check(now: Presented | null): void {
      if (now === null || now === 'expired') throw unauthenticated(now ?? 'invalid');
      // Every token may read.
      if (needed !== 'read' && !allows(now.scope, needed)) throw beyondScope(needed, false);
    }
    return (statement) => {
      if (viewer.ended?.aborted) throw unauthenticated('invalid');
      const found = viewer.tokenId === undefined ? viewer : viewers.recheck(viewer);
      if (found instanceof Promise) return found.then(check).then(statement);
      check(found);
      return statement();
    };
  }
  return { findAgain, isValid, recheck, guard };
}
