/** The options of the HTTP server of a gateway. */

import type { GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Turns } from '../database/turns.ts';
import type { Timeouts } from '../http/connections.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { AccountsElsewhere } from '../pages/accounts.ts';

import type { JoinedHooks } from './hooks.ts';

/** How long, in seconds, responses and valid tokens are cached at most, even if no change is announced. */
export const cacheMaxAge = 300;

export interface ServerOptions {
  config: Config;
  database: Database;
  feed: ChangeFeed;
  responseCache: ResponseCache;
  logger: Logger;
  /** Lets users take turns with their statements. */
  turns: Turns;
  /** Aborted when the gateway is about to close: `/readyz` fails from then on. */
  stopping?: AbortSignal;
  /** Aborted when the gateway closes. */
  closing: AbortSignal;
  /** How long the server waits for clients. By default the usual timeouts. */
  timeouts?: Timeouts;
  /** How many connections there may be. By default as many as the limits of the process allow. */
  maxConnections?: number;
  /** Set where accounts live elsewhere. */
  accounts?: AccountsElsewhere | undefined;
  /** Plugins of others for Yoga. */
  plugins?: readonly Plugin[] | undefined;
  /** The schema of `/graphql`. By default the core's own. */
  schema?: GraphQLSchema | undefined;
  /** What extensions do. */
  hooks: JoinedHooks;
}
