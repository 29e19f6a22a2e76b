/** Gateways for tests that read from standbys. */

import { extensions } from '../../../src/extensions/extensions.ts';
import { openReplicas, type Replicas } from '../../../src/extensions/standbys/replicas.ts';
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
  const bounds = { connections: 5, statement: 10_000 };
  let replicas: Replicas | undefined;
  const gateway = await openTestGateway(database, {
    ...options,
    extensions: [
      ...extensions,
      {
        settings: {},
        async open(_, { database: { sql }, feed }) {
          replicas = await openReplicas({ sql, feed, limits: bounds, urls, onChange() {} });
          return replicas;
        },
      },
    ],
  });
  if (!replicas) throw new Error('it has no standbys');
  return { ...gateway, replicas };
}
