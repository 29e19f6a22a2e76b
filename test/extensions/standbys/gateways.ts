/** Gateways for tests that read from standbys. */

import { extensions } from '../../../src/extensions/extensions.ts';
import { standbys } from '../../../src/extensions/standbys/extension.ts';
import type { Replicas } from '../../../src/extensions/standbys/replicas.ts';
import {
  openTestGateway,
  type TestDatabase,
  type TestGateway,
  type TestGatewayOptions,
} from '../../support/gateway.ts';

export interface StandbyGateway extends TestGateway {
  readonly replicas: Replicas;
}

export async function openStandbyGateway(
  database: TestDatabase,
  urls: readonly string[],
  options: TestGatewayOptions = {},
): Promise<StandbyGateway> {
  let replicas: Replicas | undefined;
  const gateway = await openTestGateway(database, {
    ...options,
    settings: {
      DATABASE_URL: String(database.pool.options.connectionString),
      DATABASE_REPLICA_URLS: urls.join(','),
      DATABASE_CONNECTIONS: '5',
      ...options.settings,
    },
    extensions: extensions.map((extension) => ({
      ...extension,
      async open(...given) {
        const hooks = await extension.open?.(...given);
        // Its hooks are those of the replicas, and more.
        if (extension.settings === standbys.settings) replicas = hooks as Replicas;
        return hooks;
      },
    })),
  });
  if (!replicas) throw new Error('it has no standbys');
  return { ...gateway, replicas };
}
