/** What the server of a gateway is made of, and the pipeline as the rest of the server sees it. */

import type { Logger } from 'pino';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { UserQuota } from '../graphql/userQuota.ts';
import type { Timeouts } from '../http/connections.ts';
import type { Cors } from '../http/cors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';
import type { ResponseCache } from '../http/responseCache.ts';
import type { MirrorService } from '../mirror/service.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Access } from './authentication.ts';
import type { OptionalFeatures } from './optionalFeatures.ts';

/** In seconds: how long anything is cached, responses and valid tokens alike, even if no change is heard of. */
export const cacheMaxAge = 300;

/** How many WebSockets and event streams of many operations a user may have open in one process. */
export const mostConnections = 100;

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
  /** How long the server waits for clients; the usual timeouts unless given. */
  timeouts?: Timeouts;
  /** How many WebSockets and event streams of many operations a user may have open; the usual number unless given. */
  mostConnections?: number;
  /** Set where the database mirrors accounts. */
  mirror?: MirrorService | undefined;
  /** The features that only some gateways have. */
  additions?: OptionalFeatures | undefined;
  /** Set where there are standbys to read from. */
  replicas?: Replicas | undefined;
}

export interface Pipeline {
  /** Handles a request, and returns its response without sending it. */
  respond(exchange: Exchange): Promise<HttpResponse | StreamedResponse>;
  /** Authenticates the client and counts the request; returns the viewer, or the response to a client that may not go on. */
  authorize(exchange: Exchange): Access | Promise<Access>;
  /** Calls back, at most once, when the token that the viewer came with has ended. Returns what ends the watch. */
  watch(viewer: Viewer, onEnded: () => void): () => void;
  readonly cors: Cors;
  /** Counts the WebSockets of each user. */
  readonly connectionQuota: UserQuota;
}
