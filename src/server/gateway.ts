/** The gateway as one thing: opened from settings, closed without losing a request. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { hasUsers } from '../auth/users.ts';
import type { Config } from '../config/config.ts';
import {
  type Database,
  type FeedChoice,
  openDatabase,
  type PoolLimits,
  whileInUse,
} from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { MigrationListener } from '../database/migrate.ts';
import type { Replicas } from '../database/replicas/replicas.ts';
import type { OnStandbyChange } from '../database/replicas/standbyConnection.ts';
import { createViewerVersions } from '../database/viewerVersions.ts';
import { prepareDemo } from '../demo/demoAccount.ts';
import { SetupError } from '../errors.ts';
import { listen } from '../http/port.ts';
import { createResponseCache } from '../http/responseCache.ts';
import { openMirrorService } from '../mirror/service.ts';
import { createLogger, standardError } from '../telemetry/log.ts';
import type { Metrics, MetricsOptions } from '../telemetry/metrics.ts';
import { logStatements } from '../telemetry/requestLog.ts';
import { release } from '../version.ts';
import { loadOptionalFeatures } from './optionalFeatures.ts';
import { cacheMaxAge } from './options.ts';
import { createGatewayServer } from './server.ts';

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

/** How long, in milliseconds, a start waits for a command to leave the folder of the embedded database, or for a gateway that closes. */
const longestLeaving = 3_000;

/** @throws {SetupError} when the settings cannot be met: database out of reach, port taken. */
export async function openGateway(config: Config): Promise<Gateway> {
  const parts = createParts();
  try {
    return await openParts(config, parts);
  } catch (error) {
    await parts.close();
    throw error;
  }
}

const boundsOf = ({ DATABASE_CONNECTIONS, STATEMENT_TIMEOUT }: Config): PoolLimits => ({
  connections: DATABASE_CONNECTIONS,
  statement: STATEMENT_TIMEOUT * 1_000,
});

async function openParts(config: Config, parts: Parts): Promise<Gateway> {
  const logger = createLogger(config.LOG_LEVEL, await standardError());
  if (logger.isLevelEnabled('debug')) parts.add(logStatements(logger));
  const bounds = boundsOf(config);
  const open = () => openDatabase(config, bounds, logMigrations(logger));
  const database = parts.add(await whileInUse(longestLeaving, open));
  const { pool, embedded, sql } = database;
  await openTraces(config, logger, parts);
  const feed = parts.add(await database.openChangeFeed(feedChoice(config, logger)));
  const responseCache = createResponseCache(createViewerVersions(feed), {
    maxBytes: config.RESPONSE_CACHE_MB * 1024 * 1024,
    maxAge: cacheMaxAge,
  });
  const onChanged = responseCache.invalidate;
  const mirror = await openMirrorService(config, { pool, sql, feed, logger, onChanged });
  if (mirror) parts.add(mirror);
  const replicas = await openStandbys(config, { database, bounds, feed, logger }, parts);
  const demoToken = embedded && !mirror ? await prepareDemo(database, config.DATA_DIR) : undefined;
  const { metrics, metricsUrl } = await openMetrics(
    config,
    { pool, responseCache, feed, mirror, replicas },
    parts,
  );
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
    additions: await loadOptionalFeatures(config),
    replicas,
  });
  const url = await listen(server, config, 'PORT');
  parts.add({ close: () => closeServer(server, closing) });
  parts.add(logUnhandledRejections(logger));
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

/**
 * Logs a promise that is rejected and that nobody waits for. By itself Node would end the process, and with it what everybody
 * else is waiting for.
 */
function logUnhandledRejections(logger: Logger): Part {
  const log = (error: unknown) =>
    logger.error({ err: error }, 'a promise was rejected that nobody waited for');
  process.on('unhandledRejection', log);
  return { close: async () => void process.off('unhandledRejection', log) };
}

function feedChoice({ CHANGE_FEED: wanted }: Config, logger: Logger): FeedChoice {
  return {
    wanted,
    chosen: ({ mode, why }) =>
      logger.info({ feed: mode, ...(why !== undefined && { why }) }, 'changes are announced'),
    report: (why) =>
      why === undefined
        ? logger.info('changes are heard of again')
        : logger.warn({ why }, 'changes are not heard of: nothing is cached'),
  };
}

function logMigrations(logger: Logger): MigrationListener {
  return {
    waiting: () => logger.info('waiting for another process that migrates the database'),
    pending: ({ length }) => logger.info({ pending: length }, 'applying migrations'),
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
async function openStandbys(
  { DATABASE_REPLICA_URLS: urls }: Config,
  {
    database,
    bounds,
    feed,
    logger,
  }: { database: Database; bounds: PoolLimits; feed: ChangeFeed; logger: Logger },
  parts: Parts,
): Promise<Replicas | undefined> {
  if (urls === undefined) return undefined;
  const { openReplicas } = await import('../database/replicas/replicas.ts');
  const { sql } = database;
  const onChange: OnStandbyChange = (standby, status, isReadFrom) =>
    isReadFrom
      ? logger.info({ standby }, 'a standby is read from')
      : logger.warn({ standby, why: status }, 'a standby is not read from');
  return parts.add(await openReplicas({ urls, sql, feed, bounds, onChange }));
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
