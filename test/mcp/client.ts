/** The client of the official SDK, as assistants use it. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { TestGateway } from '../support/gateway.ts';

/** The versions of the protocol that are tested: with a handshake, and with an envelope for each request. */
export const protocolVersions = ['2025-11-25', '2026-07-28'] as const;
export type ProtocolVersion = (typeof protocolVersions)[number];

export async function connect(
  { url }: Pick<TestGateway, 'url'>,
  token: string | undefined,
  protocolVersion: ProtocolVersion = '2026-07-28',
): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: protocolVersion === '2026-07-28' ? { pin: protocolVersion } : 'legacy' } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', url), {
      requestInit: { headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } },
    }),
  );
  return client;
}

/** The first text of a result. */
export function textOf(result: Awaited<ReturnType<Client['callTool']>>): string {
  const [first] = result.content;
  return first?.type === 'text' ? first.text : '';
}
