/** What is found out about a server before it is used. */

import { SetupError } from '../../errors.ts';
import { connectionError } from '../connectionError.ts';
import { rejectSchemaParameter } from '../migrate.ts';
import { checkPooler, isPooled } from '../pooler.ts';
import { createSession } from '../session.ts';
import type { ServerConfig } from './client.ts';
import { checkDirect } from './direct.ts';
import { serverOf } from './server.ts';

/** By which URLs a server is reached. */
export interface ServerUrls {
  readonly url: string;
  /** Past any pooler that the other goes through. */
  readonly directUrl?: string | undefined;
}

interface ServerTraits {
  /** Whether the server stands behind a pooler. */
  readonly pooled: boolean;
  /** Whether it has logical decoding. */
  readonly decodes: boolean;
}

export interface FoundServer extends ServerTraits {
  readonly server: ServerConfig;
  readonly direct: ServerConfig;
}

/** The oldest PostgreSQL that the migrations and the tests are written for. */
export const oldestServer = 15;

/**
 * Looks at the server that the URLs lead to.
 * @throws {SetupError} when it cannot be reached, or not be used.
 */
export async function findServer({ url, directUrl }: ServerUrls): Promise<FoundServer> {
  rejectSchemaParameter(url);
  const server = serverOf(url);
  const traits = await checkServer(server, url);
  if (directUrl === undefined) return { server, direct: server, ...traits };
  rejectSchemaParameter(directUrl, 'DATABASE_DIRECT_URL');
  const direct = serverOf(directUrl);
  await checkDirect({ server, direct, url, directUrl });
  return { server, direct, ...traits };
}

async function checkServer(server: ServerConfig, url: string): Promise<ServerTraits> {
  const { client, close } = createSession(server);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; decodes: boolean }>(
      `SELECT current_setting('server_version_num') AS version, current_setting('wal_level') = 'logical' AS decodes`,
    );
    const version = Math.trunc(Number(rows[0]?.version) / 10_000);
    if (version < oldestServer) {
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    const pooled = await isPooled(client);
    if (pooled) await checkPooler(client);
    return { pooled, decodes: rows[0]?.decodes ?? false };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(url, client, error);
  } finally {
    await close();
  }
}
