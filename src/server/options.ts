/** The options of the HTTP server of a gateway, and its optional features. */

import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas.ts';
import { loadPlugins } from '../graphql/otherPlugins.ts';
import type { Timeouts } from '../http/connections.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { MirrorService } from '../mirror/service.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** How long, in seconds, responses and valid tokens are cached at most, even if no change is announced. */
export const cacheMaxAge = 300;

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
  /** How long the server waits for clients. By default the usual timeouts. */
  timeouts?: Timeouts;
  /** How many connections there may be. By default as many as the limits of the process allow. */
  maxConnections?: number;
  /** How many WebSockets a user may have open. By default the usual number. */
  mostSockets?: number;
  /** Set where the database mirrors accounts. */
  mirror?: MirrorService | undefined;
  /** The features that only some gateways have. */
  additions?: Awaited<ReturnType<typeof loadOptionalFeatures>> | undefined;
  /** Set where there are standbys to read from. */
  replicas?: Replicas | undefined;
}

/** Loads what the settings ask for: the schema of a subgraph for `/graphql`, plugins of others, and the tools at `/mcp`. */
export async function loadOptionalFeatures({
  FEDERATION,
  INTROSPECTION,
  MCP,
  YOGA_PLUGINS,
}: Pick<Config, 'FEDERATION' | 'INTROSPECTION' | 'MCP' | 'YOGA_PLUGINS'>) {
  const federation = FEDERATION === 'on' ? await import('../schema/federation/subgraph.ts') : undefined;
  return {
    plugins: await loadPlugins(YOGA_PLUGINS),
    schema: federation?.createSubgraph(INTROSPECTION === 'on'),
    createMcp: MCP === 'off' ? undefined : (await import('../mcp/mcp.ts')).createMcp,
  };
}
