/** The gateway as one thing: opened from settings, closed without losing a request. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from 'pino';
import { type Config, SetupError } from '../config.ts';
import type { ChangeFeed } from '../database/changeFeed.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { prepareDemo } from '../demo/demoAccount.ts';
import { listen } from '../http/listen.ts';
import { createResponseCache } from '../http/responseCache.ts';
import { type MirrorService, openMirrorService } from '../mirror/service.ts';
import { createLogger } from '../telemetry/log.ts';
import type { MetricsServer } from '../telemetry/metrics.ts';
import type { Traces } from '../telemetry/traces.ts';
import { release } from '../version.ts';
import { createGatewayServer } from './pipeline.ts';

export interface Gateway {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly database: Database;
  /** Where its metrics are, where it serves them itself. */
  readonly metricsUrl: string | undefined;
  /** The token of the demo account, where there is one. */
  readonly demoToken: string | undefined;
  /** Settles, once the log says why, when nothing but a new start can help. */
  readonly failure: Promise<void>;
  /** Stops listening, finishes the requests in flight, and closes the database. */
  close(): Promise<void>;
}

/** @throws {SetupError} when the settings cannot be met: database out of reach, port taken. */
export async function openGateway(config: Config): Promise<Gateway> {
  const logger = createLogger(config.LOG_LEVEL);
  const database = await openDatabase(config, {
    connections: config.DATABASE_CONNECTIONS,
    statement: config.STATEMENT_TIMEOUT * 1_000,
  });
  let mirror: MirrorService | undefined;
  let metricsServer: MetricsServer | undefined;
  let traces: Traces | undefined;
  let feed: ChangeFeed | undefined;
  try {
    traces = await openTraces(config, logger);
    mirror = await openMirrorService(config, database.pool, logger);
    const demoToken = database.embedded && !mirror ? await prepareDemo(database, config.DATA_DIR) : undefined;
    const following = await database.follow();
    feed = following;
    const responseCache = createResponseCache(following, {
      maxBytes: config.RESPONSE_CACHE_MB * 1024 * 1024,
      maxAge: config.CACHE_MAX_AGE,
    });
    if (!following.listening) logger.warn('changes are not heard of: nothing is cached');
    const metering = config.METRICS_PORT === undefined ? undefined : await import('../telemetry/metrics.ts');
    const metrics = metering?.createMetrics({ pool: database.pool, responseCache, feed: following });
    // Those of workers are served by the process that started them.
    if (metrics && !cluster.isWorker) metricsServer = await metering?.serveMetrics(config, metrics.print);
    const closing = new AbortController();
    const server = createGatewayServer({
      config,
      database,
      feed: following,
      responseCache,
      logger,
      metrics,
      demoToken,
      closing: closing.signal,
      mirror,
    });
    const url = await listen(server, config, 'PORT');
    logger.info({ url, release, database: database.embedded ? 'embedded' : 'server' }, 'serving');
    return {
      url,
      database,
      metricsUrl: metricsServer?.url,
      demoToken,
      failure: database.failure.then((error) => {
        if (error instanceof SetupError) logger.fatal(error.message);
        else
          logger.fatal(
            { err: error },
            'the embedded database failed; what it has acknowledged is there at the next start',
          );
      }),
      async close() {
        logger.info('closing');
        const closed = once(server, 'close');
        server.close();
        closing.abort();
        // `close` ends the connections that are idle now, not those that become so when their request is done.
        const sweep = setInterval(() => server.closeIdleConnections(), 20);
        await mirror?.close();
        await closed;
        clearInterval(sweep);
        await metricsServer?.close();
        await traces?.close();
        await following.close();
        await database.close();
        logger.info('closed');
      },
    };
  } catch (error) {
    await metricsServer?.close();
    await traces?.close();
    await mirror?.close();
    await feed?.close();
    await database.close();
    throw error;
  }
}

async function openTraces(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config,
  logger: Logger,
): Promise<Traces | undefined> {
  return endpoint === undefined
    ? undefined
    : (await import('../telemetry/traces.ts')).startTraces(endpoint, logger);
}
