/** The hooks of a mirror for tests, with an upstream client of the test. */

import type pg from 'pg';
import { type Logger, pino } from 'pino';
import { clientError } from '../../../../src/errors.ts';
import type { Extension, GatewayParts, Hooks } from '../../../../src/extensionPoints.ts';
import { extensions } from '../../../../src/extensions/extensions.ts';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import type { Upstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { upstream as extension } from '../../../../src/extensions/upstream/extension.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import { createElsewhere } from '../../../../src/extensions/upstream/mirror/elsewhere.ts';
import { isMirrored } from '../../../../src/extensions/upstream/mirror/mirror.ts';
import { sync } from '../../../../src/extensions/upstream/mirror/sync.ts';
import type { UpstreamConfig } from '../../../../src/extensions/upstream/settings.ts';
import type { AccountElsewhere } from '../../../../src/schema/context.ts';

/** Creates a mirror that sends activations and reads of details upstream, but never refreshes an account. */
export function stillMirror(
  pool: pg.Pool,
  upstream: Upstream,
  logger: Logger = pino({ level: 'silent' }),
): { readonly elsewhere: AccountElsewhere } {
  const refresh = () =>
    sync({ pool, upstream, listsOnly: true }).then(
      () => true,
      () => false,
    );
  return {
    elsewhere: createElsewhere({
      pool,
      logger,
      accountOf: async ({ id }) =>
        (await isMirrored(pool, id)) ? { upstream, budget: createBudget(0), refresh } : undefined,
      onActivated: async () => {},
      unreachable: clientError('BAD_GATEWAY', messages.upstreamUnusable),
    }),
  };
}

/** All extensions, with this mirror in place of that of the settings. */
export const extensionsWith = (
  open: (config: UpstreamConfig, gateway: GatewayParts) => Hooks | Promise<Hooks>,
): readonly Extension[] =>
  extensions.with(extensions.indexOf(extension), {
    settings: {},
    // It was read with the settings of all extensions.
    open: (config, gateway) => open(config as UpstreamConfig, gateway),
  });
