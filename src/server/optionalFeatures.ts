/** What only some gateways have. Each is loaded only where the settings ask for it. */

import type { GraphQLSchema } from 'graphql';
import type { Config } from '../config/config.ts';
import type { McpHandler, McpOptions } from '../mcp/mcp.ts';

export interface OptionalFeatures {
  /** What `/graphql` serves, if it is not the gateway's own schema alone. */
  readonly schema?: GraphQLSchema;
  /** Makes the tools at `/mcp`. */
  readonly createMcp?: (options: McpOptions) => McpHandler;
}

type Settings = Pick<Config, 'FEDERATION' | 'INTROSPECTION' | 'MCP'>;

export async function loadOptionalFeatures({
  FEDERATION,
  INTROSPECTION,
  MCP,
}: Settings): Promise<OptionalFeatures> {
  return {
    ...(FEDERATION === 'on' && { schema: await loadSubgraph(INTROSPECTION === 'on') }),
    ...(MCP !== 'off' && { createMcp: (await import('../mcp/mcp.ts')).createMcp }),
  };
}

async function loadSubgraph(mayBeRead: boolean): Promise<GraphQLSchema> {
  const { createSubgraph } = await import('../schema/federation/subgraph.ts');
  return createSubgraph(mayBeRead);
}
