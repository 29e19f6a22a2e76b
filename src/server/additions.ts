/** What only some gateways have. Each is loaded only where the settings ask for it. */

import type { GraphQLSchema } from 'graphql';
import type { Config } from '../config.ts';

export interface Additions {
  /** What `/graphql` serves, if it is not the gateway's own schema alone. */
  readonly schema?: GraphQLSchema;
}

export async function loadAdditions({
  FEDERATION,
  INTROSPECTION,
}: Pick<Config, 'FEDERATION' | 'INTROSPECTION'>): Promise<Additions> {
  return FEDERATION === 'on' ? { schema: await loadSubgraph(INTROSPECTION === 'on') } : {};
}

async function loadSubgraph(mayBeRead: boolean): Promise<GraphQLSchema> {
  const { createSubgraph } = await import('../schema/federation/subgraph.ts');
  return createSubgraph(mayBeRead);
}
