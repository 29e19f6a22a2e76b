/** The client of the official SDK, as assistants use it, and a file of persisted operations, some of which are tools. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { authorizationOf, type TestGateway } from './gateway.ts';
import { newFolder } from './newFolder.ts';

/** The versions of the protocol that are tested: with a handshake, and with an envelope for each request. */
export const protocolVersions = ['2025-11-25', '2026-07-28'] as const;

export async function connect(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  protocolVersion: (typeof protocolVersions)[number] = '2026-07-28',
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: protocolVersion === '2026-07-28' ? { pin: protocolVersion } : 'legacy' } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', url), {
      requestInit: { headers: authorizationOf(token) },
    }),
  );
  return client;
}

/** The first text of a result. */
export function textOf(result: Awaited<ReturnType<Client['callTool']>>): string {
  const [first] = result.content;
  return first?.type === 'text' ? first.text : '';
}

const operations = `
"Sessions with one trainer, newest first."
query SessionsOfTrainer(
  "The trainer." $trainer: Int!, $first: Int! = 3, $where: DttSessionFilter, $others: [ID!]! = []
) {
  nodes(ids: $others) { id }
  dttDevice(databaseId: $trainer) {
    bubbleId
    sessions(first: $first, where: $where) { nodes { databaseId name createdAt } }
  }
}

"Activates a template."
mutation Activate($template: Int!) {
  activateTemplate(template: { databaseId: $template }) { template { databaseId } }
}

"Devices of every kind."
query Devices { devices { nodes { databaseId ... on OssmDevice { chip } } } }

"Not a tool, since another tool has this name."
query getCurrentUser { viewer { username } }

"Nor one, also where the settings leave that tool out."
query graphqlQuery { viewer { username } }

query WithoutDescription { viewer { username } }

"Not a tool, since it is a subscription."
subscription Follow { viewer { username } }
`;

/** Writes the file. */
export async function operationsFile(): Promise<string> {
  const path = join(newFolder(), 'operations.graphql');
  await writeFile(path, operations);
  return path;
}
