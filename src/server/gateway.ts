/** The gateway as one thing: opened from settings, closed without losing a request. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { hasUsers } from '../auth/users.ts';
import type { Config } from '../config.ts';
import { type Database, openDatabase } from '../database/database.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { prepareDemo } from '../demo/demoAccount.ts';
import { SetupError } from '../errors.ts';
import { listen } from '../http/listen.ts';
import { createResponseCache } from '../http/responseCache.ts';
import { type MirrorOptions, openMirrorService } from '../mirror/service.ts';
import { createLogger } from '../telemetry/log.ts';
import type { Metrics, MetricsOptions } from '../telemetry/metrics.ts';
import { logStatements } from '../telemetry/statementLog.ts';
import { release } from '../version.ts';
import { loadAdditions } from './additions.ts';
import { createGatewayServer } from './pipeline.ts';

export interface Gateway {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly database: Database;
  /** Where its metrics are, where it serves them itself. */
  readonly metricsUrl: string | undefined;
  /** The token of the demo account, where there is one. */
  readonly demoToken: string | undefined;
  /** Whether anybody has an account in the database. */
  readonly hasUsers: boolean;
  /** Settles, once the log says why, when nothing but a new start can help. */
  readonly failure: Promise<void>;
  /** Stops listening, finishes the requests in flight, and closes the database. */
  close(): Promise<void>;
}

/** How long the mirror waits for what, where it is not as long as it usually does. */
type Times = Pick<MirrorOptions, 'idle' | 'timing'>;

/** @throws {SetupError} when the settings cannot be met: database out of reach, port taken. */
export async function openGateway(config: Config, times: Times = {}): Promise<Gateway> {
  const parts = createParts();
  try {
    return await openParts(config, parts, times);
  } catch (error) {
    await parts.close();
    throw error;
  }
}

async function openParts(config: Config, parts: Parts, times: Times): Promise<Gateway> {
  const logger = createLogger(config.LOG_LEVEL);
  if (logger.isLevelEnabled('debug')) parts.add(logStatements(logger));
  const bounds = {
    connections: config.DATABASE_CONNECTIONS,
    statement: config.STATEMENT_TIMEOUT * 1_000,
  };
  const listener: MigrationListener = {
    waiting: () => logger.info('waiting for another process that migrates the database'),
    pending: ({ length }) => logger.info({ pending: length }, 'applying migrations'),
    repaired: (repair) => logger.warn({ repair }, 'a migration has repaired the database'),
  };
  const database = parts.add(await openDatabase(config, bounds, listener));
  const { pool, embedded } = database;
  await openTraces(config, logger, parts);
  const feed = parts.add(await database.openChangeFeed());
  if (!feed.listening) logger.warn('changes are not heard of: nothing is cached');
  const responseCache = createResponseCache(feed, {
    maxBytes: config.RESPONSE_CACHE_MB * 1024 * 1024,
    maxAge: config.CACHE_MAX_AGE,
  });
  const { sql } = database;
  const onChanged = responseCache.invalidate;
  const mirror = await openMirrorService(config, { ...times, pool, sql, feed, logger, onChanged });
  if (mirror) parts.add(mirror);
  const demoToken = embedded && !mirror ? await prepareDemo(database, config.DATA_DIR) : undefined;
  const { metrics, metricsUrl } = await openMetrics(config, { pool, responseCache, feed, mirror }, parts);
  const closing = new AbortController();
  const server = createGatewayServer({
    config,
    database,
    feed,
    responseCache,
    logger,
    metrics,
    demoToken,
    closing: closing.signal,
    mirror,
    additions: await loadAdditions(config),
  });
  const url = await listen(server, config, 'PORT');
  parts.add({ close: () => closeServer(server, closing) });
  logger.info({ url, release, database: embedded ? 'embedded' : 'server' }, 'serving');
  return {
    url,
    database,
    metricsUrl,
    demoToken,
    hasUsers: await hasUsers(database.sql),
    failure: database.failure.then((error) => logFailure(logger, error)),
    async close() {
      logger.info('closing');
      await parts.close();
      logger.info('closed');
    },
  };
}

interface Part {
  close(): Promise<void>;
}

/** What a gateway has open. */
interface Parts extends Part {
  add<Opened extends Part>(part: Opened): Opened;
}

/** Closes what was opened, in the opposite order: what is opened later makes use of what was opened before. */
function createParts(): Parts {
  const open: Part[] = [];
  return {
    add(part) {
      open.push(part);
      return part;
    },
    async close() {
      for (const part of open.reverse()) await part.close();
    },
  };
}

/** Ends streams, finishes the other requests, and takes no more. */
async function closeServer(server: Server, closing: AbortController): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  closing.abort();
  // `close` ends the connections that are idle now, not those that become so when their request is done.
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  await closed;
  clearInterval(sweep);
}

/** Loaded only where the settings ask for them. */
async function openTraces(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config,
  logger: Logger,
  parts: Parts,
): Promise<void> {
  if (endpoint === undefined) return;
  const { startTraces } = await import('../telemetry/traces.ts');
  parts.add(startTraces(endpoint, logger));
}

/** Loaded only where the settings ask for them. */
async function openMetrics(
  config: Config,
  options: MetricsOptions,
  parts: Parts,
): Promise<{ metrics?: Metrics; metricsUrl?: string | undefined }> {
  if (config.METRICS_PORT === undefined) return {};
  const { createMetrics } = await import('../telemetry/metrics.ts');
  const metrics = createMetrics(options);
  // Those of workers are served by the process that started them.
  if (cluster.isWorker) return { metrics };
  const { serveMetrics } = await import('../telemetry/metricsServer.ts');
  const { url } = parts.add(await serveMetrics(config, metrics.print));
  return { metrics, metricsUrl: url };
}

function logFailure(logger: Logger, error: Error): void {
  if (error instanceof SetupError) logger.fatal(error.message);
  else
    logger.fatal(
      { err: error },
      'the embedded database failed; what it has acknowledged is there at the next start',
    );
}
