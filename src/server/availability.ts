/** Whether the database can be reached: what probes, the log and clients are told about it. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isAway } from '../database/connectionError.ts';
import type { RunInTurn } from '../database/turns.ts';
import { databaseAway, errorText } from '../errors.ts';
import type { Outcome } from '../http/exchange.ts';
import { textResponse } from '../http/response.ts';
import type { PageHandler } from '../pages/page.ts';
import type { ServerOptions } from './options.ts';

export type Outages = ReturnType<typeof createOutages>;

/** Logs one line when the database goes away and one when it is back, however many requests fail in between. */
export function createOutages(logger: Logger) {
  let outage: { requests: number } | undefined;

  /** Throws the error or, if the database is away, one that says so to the client. */
  function fail(error: unknown): never {
    if (!isAway(error)) throw error;
    if (!outage) {
      outage = { requests: 0 };
      logger.error({ why: errorText(error) }, 'the database is away: requests that need it get a 503');
    }
    throw databaseAway();
  }

  /** Runs a statement. If the database is away, the error says so to the client. */
  const watch: RunInTurn = async (statement) => {
    const before = outage;
    const result = await statement().catch(fail);
    // A statement that began earlier says nothing.
    if (outage && outage === before) {
      logger.info({ requests: outage.requests }, 'the database is back');
      outage = undefined;
    }
    return result;
  };

  return {
    watch,
    fail,
    /** Must be called with each request that is over. */
    count({ status }: Pick<Outcome, 'status'>): void {
      if (outage && status === 503) outage.requests++;
    },
  };
}

/** How long, in milliseconds, the database may take to respond to a probe. */
const probeTimeout = 2_000;

/** The page at `/readyz`. It says how fresh a mirror is, but without its upstream a gateway is ready all the same. */
export function createReadiness(
  { database: { pool }, feed, mirror }: Pick<ServerOptions, 'database' | 'feed' | 'mirror'>,
  watch: RunInTurn,
): PageHandler {
  /** All probes meanwhile share one look at the database: a probe needs no token. */
  let checking: Promise<boolean> | undefined;
  return async () => {
    const responds = () =>
      watch(() => pool.query('SELECT 1')).then(
        () => true,
        () => false,
      );
    checking ??= Promise.race([responds(), sleep(probeTimeout, false, { ref: false })]).finally(() => {
      checking = undefined;
    });
    const isReady = await checking;
    const lines = [isReady ? 'ready' : 'the database cannot be reached'];
    if (!feed.listening) lines.push('change feed: not heard; nothing is cached');
    if (mirror) lines.push(`upstream: ${mirror.status()}`);
    return textResponse(isReady ? 200 : 503, lines.join('\n'));
  };
}
