/** Connections of a feed. */

import { Socket } from 'node:net';
import pg from 'pg';

/** @param lost aborted when the connection is; the connection is given up when it is aborted. */
export async function openConnection(config: pg.ClientConfig, lost: AbortController): Promise<pg.Client> {
  const socket = new Socket();
  const client = new pg.Client({ ...config, stream: () => socket });
  const lose = () => lost.abort();
  client.on('error', lose).once('end', lose);
  // Not `client.end()`, which waits for what a dead connection never says.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await client.connect();
  return client;
}
