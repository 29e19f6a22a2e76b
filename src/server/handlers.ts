/** The handlers of requests, made from the options of the server. */

import type { HasEnded, Viewer, Viewers } from '../auth/viewer.ts';
import { inTurn, type RunInTurn, type Turns } from '../database/turns.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import { createDemoTokenFor } from '../pages/demoToken.ts';
import { createPages } from '../pages/pages.ts';
import { createProxy } from '../proxy/proxy.ts';
import { createRestHandler } from '../rest/handler.ts';
import { createContext } from '../schema/context.ts';
import { createWatchViewer } from '../schema/subscriptions.ts';
import type { UpstreamAccounts } from '../upstream/access.ts';
import { cacheMaxAge, type ServerOptions } from './options.ts';
import { createReadiness } from './readiness.ts';

/** How long, in milliseconds, a body may take before its token is looked up again. */
const longestTrust = 1_000;

interface HandlersOptions {
  readonly viewers: Viewers;
  readonly turns: Turns;
}

/** A factory of contexts whose statements take turns. Statements on a standby take none: it has a pool of its own. */
const createContexts =
  ({ database, replicas, mirror }: Pick<ServerOptions, 'database' | 'replicas' | 'mirror'>) =>
  (runnerFor: (userId: number) => RunInTurn) =>
  (viewer: Viewer) => {
    const sql = replicas?.sqlFor(viewer) ?? inTurn(database.sql, runnerFor(viewer.id));
    return createContext(sql, viewer, mirror?.upstream);
  };

/** Makes the handlers of the pages and of both APIs, and the watch on the tokens of viewers. */
export function createHandlers(
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
  { viewers, turns }: HandlersOptions,
) {
  // Nothing announces that a token of the upstream has ended, so the upstream has to be asked.
  const maxAge = Math.min(cacheMaxAge, mirror?.tokens?.maxAge ?? Number.POSITIVE_INFINITY);
  const { isValid, hasEnded } = createTokenChecks(viewers, mirror);
  const demoTokenFor = createDemoTokenFor(demoToken, config);
  const contextsBy = createContexts({ database, replicas, mirror });
  const contextOf = contextsBy(turns.forRequest);
  const changes = {
    watchViewer: createWatchViewer({ feed, viewers: { isValid }, maxAge }),
    cache: responseCache,
    createContext: contextsBy(turns.forLiveQuery),
  };
  const watch = (viewer: Viewer, onEnded: () => void) =>
    changes.watchViewer(viewer, { changed() {}, ended: onEnded }).stop;
  return {
    watch,
    hasEnded,
    page: createPages({ config, demoTokenFor, readiness: createReadiness(database, feed, mirror?.status) }),
    ...createGraphqlHandler({
      config,
      createContext: contextOf,
      changes,
      demoTokenFor,
      isValid,
      hasEnded,
      logger,
      closing,
      schema: additions?.schema,
    }),
    proxy: mirror?.forwarding && createProxyFor(mirror.forwarding, config, feed),
    rest: createRestHandler({
      createContext: contextOf,
      hasEnded,
      docsPath: config.INTROSPECTION === 'on' ? '/docs' : undefined,
    }),
  };
}

/** REST in front of an upstream. The response cache has the other half of the memory, for GraphQL. */
const createProxyFor = (
  accounts: UpstreamAccounts,
  { UPSTREAM_INTERVAL, RESPONSE_CACHE_MB }: ServerOptions['config'],
  feed: ServerOptions['feed'],
) =>
  createProxy({
    accounts,
    feed,
    lifetime: UPSTREAM_INTERVAL,
    maxBytes: (RESPONSE_CACHE_MB / 2) * 1024 * 1024,
  });

/** The checks of tokens that were valid when their requests came. */
function createTokenChecks(viewers: Viewers, mirror: ServerOptions['mirror']) {
  const isValid = async (viewer: Viewer) =>
    viewer.tokenId === undefined ? ((await mirror?.isValid(viewer)) ?? false) : viewers.isValid(viewer);
  const hasEnded: HasEnded = async (viewer, began) =>
    performance.now() - began > longestTrust && !(await isValid(viewer));
  return { isValid, hasEnded };
}
