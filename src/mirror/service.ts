/** The mirror as a part of the gateway: its refresh, and the activations that it sends to the upstream. */

import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { SetupError } from '../errors.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import { activationTiming, createUpstreamAccount } from './activation.ts';
import { checkMirror } from './mirror.ts';
import { startRefresh } from './refresh.ts';
import { createUpstream, type Timing } from './upstream.ts';

export interface MirrorService {
  readonly upstream: UpstreamAccount;
  /** As in `Refresh`. */
  status(): string;
  close(): Promise<void>;
}

/**
 * Starts to mirror the account that the settings name, if they name one.
 * @throws {SetupError} without a token, and for a database that holds other data.
 */
export async function openMirrorService(
  config: Pick<Config, 'UPSTREAM_URL' | 'UPSTREAM_TOKEN' | 'UPSTREAM_INTERVAL' | 'DATABASE_URL' | 'DATA_DIR'>,
  pool: pg.Pool,
  logger: Logger,
  timing: Partial<Timing> = {},
): Promise<MirrorService | undefined> {
  if (config.UPSTREAM_URL === undefined) return undefined;
  const { base, token } = upstreamOf(config);
  await checkMirror(pool, createUpstream({ base, token }).base);
  const refresh = startRefresh({
    pool,
    upstream: createUpstream({ base, token, timing }),
    interval: config.UPSTREAM_INTERVAL * 1000,
    logger,
    config,
  });
  const forClients = () => createUpstream({ base, token, timing: { ...activationTiming, ...timing } });
  return {
    upstream: createUpstreamAccount({
      pool,
      upstream: forClients(),
      upstreamForDetails: forClients(),
      logger,
    }),
    status: refresh.status,
    close: refresh.stop,
  };
}

/** @throws {SetupError} when the settings do not say where the account is, or lack its token. */
export function upstreamOf(config: Pick<Config, 'UPSTREAM_URL' | 'UPSTREAM_TOKEN'>): {
  base: string;
  token: string;
} {
  const { UPSTREAM_URL: base, UPSTREAM_TOKEN: token } = config;
  if (base === undefined) throw new SetupError('Say where the account is, with --from or UPSTREAM_URL.');
  if (token === undefined) {
    throw new SetupError(`UPSTREAM_TOKEN is not set: it takes the API token for ${base}.`);
  }
  return { base, token };
}
