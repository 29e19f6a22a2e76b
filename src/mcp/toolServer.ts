/** A server of the SDK that offers the tools, and the schema as a resource. */

import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server';
import { printedSchema } from '../schema/schema.ts';
import { release } from '../version.ts';
import type { Arguments, Result, Tool } from './tool.ts';

export interface McpServerOptions {
  readonly tools: readonly Tool[];
  /** Whether the schema may be read. */
  readonly hasSchema: boolean;
  /** Runs a tool. */
  call(tool: Tool, given: Arguments): Promise<Result>;
}

const schemaResource = {
  uri: 'dovetail://schema.graphql',
  name: 'schema',
  title: 'The GraphQL schema',
  description: 'What graphqlQuery may ask for: every type, field and argument, with what they mean.',
  mimeType: 'application/graphql',
};

const instructions = `Trainer devices, training programs and sessions, locks and lock sessions of the one user whose token is used.
Prefer the tool that is named after what is needed; graphqlQuery can filter, sort, count and join.`;

/** Creates a server for one request. It has no state that a later request would need. */
export function createServer({ tools, hasSchema, call }: McpServerOptions): Server {
  const server = new Server(
    { name: 'dovetail', title: 'Dovetail', version: release },
    { capabilities: { tools: {}, ...(hasSchema && { resources: {} }) }, instructions },
  );

  server.setRequestHandler('tools/list', () => ({
    tools: tools.map(({ requestFor: _, resultOf: __, inputSchema, outputSchema, ...shown }) => ({
      ...shown,
      inputSchema: { ...inputSchema },
      ...(outputSchema && { outputSchema: { ...outputSchema } }),
    })),
  }));

  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool ${JSON.stringify(params.name.slice(0, 100))}`,
      );
    const { content, error } = await call(tool, params.arguments ?? {});
    const text = [error, content && JSON.stringify(content)].filter((part) => part !== undefined);
    return {
      content: text.map((part) => ({ type: 'text' as const, text: part })),
      ...(content && error === undefined && { structuredContent: content }),
      ...(error !== undefined && { isError: true }),
    };
  });

  if (hasSchema) {
    server.setRequestHandler('resources/list', () => ({ resources: [schemaResource] }));
    server.setRequestHandler('resources/read', ({ params: { uri } }) => {
      if (uri !== schemaResource.uri) throw new ResourceNotFoundError(uri.slice(0, 100));
      return { contents: [{ uri, mimeType: schemaResource.mimeType, text: printedSchema() }] };
    });
  }
  return server;
}
