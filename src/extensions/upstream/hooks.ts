/** What a gateway in front of an upstream does at each point: the proxy handles REST, and the mirror delays and completes GraphQL. */

import type { GatewayParts, Hooks, Metric } from '../../extensionPoints.ts';
import { maxConnections } from './mirror/accounts.ts';
import { longestActivation } from './mirror/activation.ts';
import { type MirrorService, openMirrorService } from './mirror/service.ts';
import { createProxy } from './proxy/proxy.ts';
import type { UpstreamConfig } from './settings.ts';

export async function openUpstream(
  config: UpstreamConfig,
  gateway: GatewayParts,
): Promise<Hooks | undefined> {
  const { database, feed, responseCache, logger } = gateway;
  const { pool, sql } = database;
  const onChanged = responseCache.invalidate;
  const mirror = await openMirrorService(config, { pool, sql, feed, logger, onChanged });
  return mirror && hooksOf(mirror, config, gateway);
}

export function hooksOf(
  mirror: MirrorService,
  { UPSTREAM_INTERVAL, RESPONSE_CACHE_MB }: Pick<UpstreamConfig, 'UPSTREAM_INTERVAL' | 'RESPONSE_CACHE_MB'>,
  { feed }: Pick<GatewayParts, 'feed'>,
): Hooks {
  const { forwarding, tokens } = mirror;
  return {
    ...(tokens && { tokens: { ...tokens, recheck: mirror.recheck } }),
    ...(forwarding && {
      handleRest: createProxy({
        accounts: forwarding,
        feed,
        lifetime: UPSTREAM_INTERVAL,
        // In addition to that of the response cache, which stores what GraphQL responds.
        maxBytes: (RESPONSE_CACHE_MB / 2) * 1024 * 1024,
      }),
    }),
    elsewhere: mirror.upstream,
    longest: longestActivation,
    connections: maxConnections,
    // What is forwarded is not read from the mirror.
    beforeRead: (exchange, viewer) =>
      exchange.endpoint === 'rest' && forwarding ? undefined : mirror.waitUntilFresh(exchange, viewer),
    changed(viewerId, isUnheard) {
      if (isUnheard) mirror.noteChange(viewerId);
    },
    readyLine: () => `upstream: ${mirror.status()}`,
    metrics: metricsOf(mirror),
    close: mirror.close,
  };
}

export function metricsOf({ figures }: Pick<MirrorService, 'figures'>): readonly Metric[] {
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
