/** A mirror service for tests, with an upstream client of the test. */

import type pg from 'pg';
import { type Logger, pino } from 'pino';
import { clientError, messages } from '../../../../src/errors.ts';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import type { Upstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { createActivation } from '../../../../src/extensions/upstream/mirror/activation.ts';
import { createDetailsOnDemand } from '../../../../src/extensions/upstream/mirror/details.ts';
import { isMirrored } from '../../../../src/extensions/upstream/mirror/mirror.ts';
import type { MirrorService } from '../../../../src/extensions/upstream/mirror/service.ts';
import { sync } from '../../../../src/extensions/upstream/mirror/sync.ts';

/** Creates a mirror that sends activations and reads of details upstream, but never refreshes an account. */
export function stillMirror(
  pool: pg.Pool,
  upstream: Upstream,
  logger: Logger = pino({ level: 'silent' }),
): MirrorService {
  const refresh = () =>
    sync({ pool, upstream, listsOnly: true }).then(
      () => true,
      () => false,
    );
  return {
    upstream: {
      activate: createActivation({
        pool,
        logger,
        accountOf: async ({ id }) => ((await isMirrored(pool, id)) ? { upstream, refresh } : undefined),
        onActivated: async () => {},
        unreachable: clientError('BAD_GATEWAY', messages.upstreamUnusable),
      }),
      fetchDetails: createDetailsOnDemand({
        pool,
        logger,
        accountOf: async () => ({ upstream, budget: createBudget(0) }),
      }),
    },
    tokens: undefined,
    recheck: async () => false,
    noteChange() {},
    waitUntilFresh: async () => undefined,
    status: () => 'test',
    figures: () => ({ accounts: 1, skipped: 0, requests: 0 }),
    close: async () => {},
  };
}
