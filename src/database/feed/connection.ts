/** Connections of a feed. */

import { Socket } from 'node:net';
import pg from 'pg';
import type { ServerConfig } from '../connection/client.ts';
import { makeSessionSettings } from '../pooler.ts';

/** @param lost aborted when the connection is; the connection is given up when it is aborted. */
export async function openConnection(
  config: ServerConfig,
  lost: AbortController,
  socket = new Socket(),
): Promise<pg.Client> {
  const client = new pg.Client({ ...config, stream: () => socket });
  const lose = () => lost.abort();
  client.on('error', (error) => lost.abort(error)).once('end', lose);
  // Not `client.end()`, which waits for what a dead connection never says.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await client.connect();
  await makeSessionSettings(client, config);
  return client;
}
