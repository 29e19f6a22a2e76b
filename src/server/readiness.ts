/** Whether the gateway can do its work, for probes. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { textResponse } from '../http/response.ts';
import type { PageHandler } from '../pages/page.ts';

/** How long, in milliseconds, the database may take to say that it is there. */
const probeTimeout = 2_000;

/** @param upstreamStatus how fresh a mirror is. Told, but no reason to be unready: it works without its upstream. */
export function createReadiness(
  database: Database,
  feed: ChangeFeed,
  upstreamStatus: (() => string) | undefined,
): PageHandler {
  /** One look at the database serves all who ask meanwhile: nobody has to have a token to ask. */
  let checking: Promise<boolean> | undefined;
  return async () => {
    checking ??= isReachable(database).finally(() => {
      checking = undefined;
    });
    const ready = await checking;
    const lines = [ready ? 'ready' : 'the database cannot be reached'];
    if (!feed.listening) lines.push('change feed: not heard; nothing is cached');
    if (upstreamStatus) lines.push(`upstream: ${upstreamStatus()}`);
    return textResponse(ready ? 200 : 503, lines.join('\n'));
  };
}

async function isReachable({ pool }: Database): Promise<boolean> {
  const responds = pool.query('SELECT 1').then(
    () => true,
    () => false,
  );
  return Promise.race([responds, sleep(probeTimeout, false, { ref: false })]);
}
