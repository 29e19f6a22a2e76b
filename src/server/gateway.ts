/** Opens a whole gateway from settings, and closes it without losing a request. */

import { once } from 'node:events';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { hasUsers } from '../auth/users.ts';
import type { Config } from '../config/config.ts';
import { closeAll } from '../database/closing.ts';
import { openDatabase, retryWhileInUse } from '../database/database.ts';
import type { FeedReport } from '../database/feed/changeFeed.ts';
import type { MigrationListener } from '../database/migrate.ts';
import { createTurns } from '../database/turns.ts';
import { SetupError } from '../errors.ts';
import { listen } from '../http/port.ts';
import { createResponseCache } from '../http/responseCache.ts';
import { createLogger, standardError } from '../telemetry/log.ts';
import { release } from '../version.ts';
import { feedOptions, openExtensions } from './hooks.ts';
import { cacheMaxAge } from './pipeline.ts';
import { createGatewayServer } from './server.ts';

/** How long, in milliseconds, a start waits for a command or a closing gateway to release the embedded database. */
const longestLeaving = 3_000;

interface Part {
  close(): Promise<void>;
}

/** Takes a part that was opened, to be closed with the gateway. */
type Add = <Opened extends Part>(part: Opened) => Opened;

/** @throws {SetupError} for what the operator can correct: an unreachable database, a port in use. */
export async function openGateway(config: Config) {
  const logger = createLogger(config.LOG_LEVEL, await standardError());
  const parts: Part[] = [];
  const add: Add = (part) => {
    parts.unshift(part);
    return part;
  };
  /** Closes in the opposite order: what is opened later uses what was opened before. */
  async function closeParts(errors: unknown[] = []): Promise<void> {
    try {
      await closeAll(parts, errors);
    } finally {
      // The first one is thrown.
      for (const err of errors.slice(1)) logger.error({ err }, 'a part of the gateway could not be closed');
    }
  }
  try {
    const stopping = new AbortController();
    const opened = await openParts(config, logger, add, stopping.signal);
    return {
      ...opened,
      /**
       * Stops listening, finishes the requests in flight, and closes the database.
       * @param delay milliseconds before that, in which requests are still taken, but `/readyz` fails.
       */
      async close(delay = 0): Promise<void> {
        logger.info('closing');
        stopping.abort();
        await sleep(delay);
        await closeParts();
        logger.info('closed');
      },
    };
  } catch (error) {
    await closeParts([error]);
    throw error;
  }
}

async function openParts(config: Config, logger: Logger, add: Add, stopping: AbortSignal) {
  const limits = { connections: config.DATABASE_CONNECTIONS, statement: config.STATEMENT_TIMEOUT * 1_000 };
  const open = () => openDatabase(config, limits, logMigrations(logger));
  const database = add(await retryWhileInUse(longestLeaving, open));
  const { pool, embedded } = database;
  const feed = add(
    await database.openChangeFeed({ ...feedOptions(config, logger), report: reportFeed(logger) }),
  );
  const responseCache = createResponseCache(feed, {
    maxBytes: config.RESPONSE_CACHE_MB * 1024 * 1024,
    maxAge: cacheMaxAge,
  });
  const turns = createTurns(pool.options.max, config.MAX_WAITING);
  const serving = { database, feed, responseCache, turns, logger };
  const hooks = await openExtensions(config, serving, ({ close }) => close && add({ close }));
  const closing = new AbortController();
  const server = createGatewayServer({ ...serving, config, hooks, stopping, closing: closing.signal });
  const url = await listen(server, config, 'PORT', config.PORT);
  hooks.serving?.(url);
  add({ close: () => closeServer(server, closing) });
  add(logUnhandledRejections(logger));
  logger.info({ url, release, database: embedded ? 'embedded' : 'server' }, 'serving');
  return {
    /** Where it listens, such as `http://127.0.0.1:4000`. */
    url,
    database,
    /** Entries of extensions for the text that a start prints. */
    lines: hooks.lines,
    shownToken: hooks.shownToken?.token,
    /** Whether anybody has an account in the database. */
    hasUsers: await hasUsers(database.pool),
    /** Settles after a failure that only a new start can mend. The log has its reason. */
    failure: database.failure.then((error) => logFailure(logger, error)),
  };
}

/**
 * Logs rejected promises that no code handles. By default Node ends the process for one, and with it the requests of all
 * clients.
 */
function logUnhandledRejections(logger: Logger): Part {
  const log = (error: unknown) =>
    logger.error({ err: error }, 'a promise was rejected that nobody waited for');
  process.on('unhandledRejection', log);
  return { close: async () => void process.off('unhandledRejection', log) };
}

/** Logs when announcements stop arriving, and when they arrive again. */
const reportFeed =
  (logger: Logger): FeedReport =>
  (why) =>
    why === undefined
      ? logger.info('change feed up; caching on')
      : logger.warn({ why }, 'change feed down; caching off');

const logMigrations = (logger: Logger): MigrationListener => ({
  waiting: () => logger.info('waiting for another process that migrates the database'),
  pending: ({ length }) => logger.info({ pending: length }, 'applying migrations'),
});

/** Ends streams, finishes the other requests, and takes no more. */
async function closeServer(server: Server, closing: AbortController): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  closing.abort();
  await closed;
}

function logFailure(logger: Logger, error: Error): void {
  if (error instanceof SetupError) logger.fatal(error.message);
  else
    logger.fatal(
      { err: error },
      'the embedded database failed; what it has acknowledged is there at the next start',
    );
}
