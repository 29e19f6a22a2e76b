/** The handlers of requests, made from the options of the server. */

import type { HasEnded, Viewer, Viewers } from '../auth/viewer.ts';
import { inTurn, type RunInTurn, type Turns } from '../database/turns.ts';
import { createGraphqlHandler } from '../graphql/handler.ts';
import { createDemoTokenFor } from '../pages/demoToken.ts';
import { createPages } from '../pages/pages.ts';
import { createProxy } from '../proxy/proxy.ts';
import { createRestHandler } from '../rest/handler.ts';
import { createContext, type UpstreamAccount } from '../schema/context.ts';
import { createWatchViewer } from '../schema/subscriptions.ts';
import { createReadiness, type Outages } from './availability.ts';
import { cacheMaxAge, type ServerOptions } from './options.ts';

/** How long, in milliseconds, a body may take before its token is looked up again. */
const longestTrust = 1_000;

interface HandlersOptions extends Pick<Outages, 'watch' | 'fail'> {
  readonly viewers: Viewers;
  readonly turns: Turns;
}

/** Makes the handlers of the pages and of both APIs, and the watch on the tokens of viewers. */
export function createHandlers(options: ServerOptions, { viewers, turns, watch, fail }: HandlersOptions) {
  const { config, database, feed, responseCache, mirror, replicas, additions } = options;
  const { isValid, hasEnded } = createTokenChecks(viewers, mirror);
  // Nothing announces that a token of the upstream has ended, so the upstream has to be asked.
  const maxAge = Math.min(cacheMaxAge, mirror?.tokens?.maxAge ?? Number.POSITIVE_INFINITY);
  const watchViewer = createWatchViewer({ feed, viewers: { isValid }, maxAge });
  const demoTokenFor = createDemoTokenFor(options.demoToken, config);
  // The statements of a mirror are on its own pool.
  const upstream: UpstreamAccount | undefined = mirror && {
    activate: (...given) => mirror.upstream.activate(...given).catch(fail),
    fetchDetails: (...given) => mirror.upstream.fetchDetails(...given).catch(fail),
  };
  /** A factory of contexts whose statements take turns. Those on a standby take none: it has a pool of its own. */
  const contextsBy = (runnerFor: (userId: number) => RunInTurn) => (viewer: Viewer) => {
    const run = runnerFor(viewer.id);
    const sql = replicas
      ? inTurn(replicas.sqlFor(viewer), watch)
      : inTurn(database.sql, (statement) => watch(() => run(statement)));
    return createContext(sql, viewer, upstream);
  };
  const contextOf = contextsBy(turns.forRequest);
  return {
    hasEnded,
    /** Calls back, at most once, when the token of a viewer has ended. @returns what ends the watch. */
    watch: (viewer: Viewer, onEnded: () => void) =>
      watchViewer(viewer, { changed() {}, ended: onEnded }).stop,
    page: createPages({ config, demoTokenFor, readiness: createReadiness(options, watch) }),
    ...createGraphqlHandler({
      ...options,
      createContext: contextOf,
      changes: { watchViewer, cache: responseCache, createContext: contextsBy(turns.forLiveQuery) },
      demoTokenFor,
      isValid,
      hasEnded,
      schema: additions?.schema,
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

/** The checks of tokens that were valid when their requests came. */
function createTokenChecks(viewers: Viewers, mirror: ServerOptions['mirror']) {
  const isValid = async (viewer: Viewer) =>
    viewer.tokenId === undefined ? ((await mirror?.isValid(viewer)) ?? false) : viewers.isValid(viewer);
  const hasEnded: HasEnded = async (viewer, began) =>
    performance.now() - began > longestTrust && !(await isValid(viewer));
  return { isValid, hasEnded };
}
