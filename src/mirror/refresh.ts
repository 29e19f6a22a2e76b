/** Keeps a mirror fresh in the background of a gateway. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { describeChanges, tokenStep } from './report.ts';
import { type SyncOptions, sync } from './sync.ts';
import { UpstreamError } from './upstream.ts';

export interface RefreshOptions extends Pick<SyncOptions, 'pool' | 'upstream' | 'lease'> {
  /** From the end of a run to the start of the next, in milliseconds. */
  readonly interval: number;
  readonly logger: Logger;
  /** Which database the mirror is in, for hints. */
  readonly config: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>;
}

export interface Refresh {
  /** When the last success and the last failure were, and of which kind that was, in one line that anybody may read. */
  status(): string;
  /** Ends the run that is under way, if one is. */
  stop(): Promise<void>;
}

/** Starts with a run at once. A run that fails is logged, and tried again after the interval. */
export function startRefresh({ interval, logger, config, ...options }: RefreshOptions): Refresh {
  const end = new AbortController();
  let lastSuccess: string | undefined;
  let lastError: string | undefined;

  async function refresh(): Promise<void> {
    try {
      const report = await sync({ ...options, signal: end.signal });
      // Undefined: another process runs it.
      if (!report) return;
      // What they say has ids and values in it: `dovetail sync` prints them.
      if (report.notes.length > 0) logger.debug({ notes: report.notes.length }, 'mirror differs');
      if (lastSuccess === undefined) logger.info({ next: tokenStep('your_name', config) }, 'mirror in step');
      const changes = describeChanges(report);
      if (changes !== undefined) logger.info({ changes, requests: report.requests }, 'mirror refreshed');
      lastSuccess = new Date().toISOString();
    } catch (error) {
      if (end.signal.aborted) return;
      const isUpstream = error instanceof UpstreamError;
      const what = isUpstream ? error.failure.failure : 'the mirror could not be written';
      lastError = `${new Date().toISOString()} ${what}`;
      logger.error(isUpstream ? error.failure : { err: error }, 'mirror not refreshed');
    }
  }

  async function loop(): Promise<void> {
    while (!end.signal.aborted) {
      await refresh();
      await sleep(interval, undefined, { signal: end.signal }).catch(() => {});
    }
  }

  const ended = loop();
  return {
    status: () => `last success ${lastSuccess ?? 'never'}, last error ${lastError ?? 'none'}`,
    async stop() {
      end.abort();
      await ended;
    },
  };
}
