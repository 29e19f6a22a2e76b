/**
 * What a gateway in front of an upstream does at each point: the proxy handles REST, and the mirror delays and completes GraphQL. The
 * whole model:
 *
 * - A token of the upstream opens one account there. While clients use it, its account is looked after here (`mirror/accounts.ts`), under the
 *   upstream's own ids. REST never reads what is here: the proxy forwards it, and stores responses for a short while.
 * - A run copies the lists of an account into the database, and then, record by record, the details that lists leave out. One run at a
 *   time writes the lists of an account, in whichever gateway (`mirror/run.ts`). Between runs, the copy gets older, and every response says how old it is.
 * - A request of GraphQL reads the copy. It waits for a run if the copy is not here, or older than it asks for, or if a client has written
 *   since (`mirror/freshness.ts`); and for details that it selects and that are not here yet (`mirror/completeReads.ts`).
 * - A write goes upstream, and is not repeated here. All gateways are told, and the copy counts as outdated until a run that began later
 *   has read it again. So nobody is shown what was before a write, even if the run fails.
 */

import type { Viewer } from '../../auth/viewer.ts';
import { closeAll } from '../../database/closing.ts';
import type { GatewayParts, Hooks, Metric } from '../../extensionPoints.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HttpResponse } from '../../http/response.ts';
import type { Timing } from './client/upstream.ts';
import { createForwarding, createWrites, elsewhereOptions } from './mirror/access.ts';
import { type Accounts, createAccounts, maxConnections } from './mirror/accounts.ts';
import { openCredentials } from './mirror/credentials.ts';
import { createElsewhere, longestActivation } from './mirror/elsewhere.ts';
import { usualWaits, type WaitLimits, waitUntilFresh } from './mirror/freshness.ts';
import { checkMirror } from './mirror/mirror.ts';
import { touch } from './mirror/mirroredAccount.ts';
import { createProxy } from './proxy/proxy.ts';
import type { UpstreamConfig } from './settings.ts';

/** What tests set. */
export interface UpstreamOptions {
  readonly timing?: Partial<Timing>;
  readonly waits?: Partial<WaitLimits>;
  /** For how long after its last use a token is remembered, and its account refreshed, in milliseconds. */
  readonly idle?: number;
  /** After how many milliseconds, at the latest, a token is checked upstream again. */
  readonly tokenMaxAge?: number;
}

/**
 * Starts to mirror the accounts of the upstream.
 * @throws {SetupError} for a database that holds other data.
 */
export async function openUpstream(
  config: UpstreamConfig & { readonly UPSTREAM_URL: string },
  { database, feed, responseCache, logger }: GatewayParts,
  { timing = {}, idle = 10 * 60_000, tokenMaxAge: maxAge = 60_000, ...options }: UpstreamOptions = {},
): Promise<Hooks> {
  const { UPSTREAM_URL: base, UPSTREAM_TOKEN: configured, UPSTREAM_INTERVAL: lifetime } = config;
  const { pool, sql } = database;
  const waits = { ...usualWaits, ...options.waits };
  await checkMirror(pool, base);
  const shared = { base, timing, interval: lifetime * 1_000, pool, sql, logger };
  const accounts = createAccounts({
    ...shared,
    isConfigured: configured !== undefined,
    feed,
    idle: configured === undefined ? idle : Number.POSITIVE_INFINITY,
    rate: config.UPSTREAM_RATE,
    onChanged: responseCache.invalidate,
    onRejected: (...rejection) => credentials.noteRejected(...rejection),
  });
  const credentials = openCredentials({ ...shared, accounts, configured, idle, maxAge });
  const writes = createWrites(accounts, pool, waits.announcement);
  const parts = { ...shared, waits, accounts, credentials, writes };
  const { tokens } = credentials;
  async function whenFresh(exchange: Exchange, { id }: Viewer): Promise<HttpResponse | undefined> {
    const account = await accounts.of(id);
    return account && waitUntilFresh(exchange, account, waits);
  }
  return {
    ...(tokens && {
      tokens: {
        ...tokens,
        /** For a stream that is open, which counts as use of the token and the account. */
        async recheck(viewer: Viewer): Promise<boolean> {
          if (!(await tokens.recheck(viewer))) return false;
          touch(accounts.getOrAdd(viewer.id));
          return true;
        },
      },
    }),
    handleRest: createProxy({
      accounts: createForwarding(parts),
      feed,
      lifetime,
      // In addition to that of the response cache, which stores what GraphQL responds.
      maxBytes: (config.RESPONSE_CACHE_MB / 2) * 1024 * 1024,
    }),
    elsewhere: createElsewhere(elsewhereOptions(parts)),
    longest: longestActivation,
    connections: maxConnections,
    // What is forwarded is not read from the mirror.
    beforeRead: (exchange, viewer) =>
      exchange.endpoint === 'rest' ? undefined : whenFresh(exchange, viewer),
    changed(viewerId, isUnheard) {
      if (isUnheard) accounts.noteChange(viewerId);
    },
    readyLine: () => `upstream: ${accounts.status()}`,
    metrics: metricsOf(accounts),
    close: () => closeAll([credentials, accounts]),
  };
}

export function metricsOf({ figures }: Pick<Accounts, 'figures'>): readonly Metric[] {
  return [
    {
      name: 'mirror_accounts',
      help: 'Accounts of the upstream that are looked after',
      read: () => figures().accounts,
    },
    {
      name: 'mirror_records_skipped',
      help: 'Records of these accounts that the upstream has and the mirror leaves out',
      read: () => figures().skipped,
    },
    {
      name: 'upstream_requests_total',
      help: 'Requests that the upstream got about accounts',
      read: () => figures().requests,
    },
  ];
}
