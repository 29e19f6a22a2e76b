/** Checks that a server can be used, and finds out what it is capable of. */

import type pg from 'pg';
import { type Diagnosis, SetupError } from '../../errors.ts';
import { connectionError, createDatabase } from '../connectionError.ts';
import { checkPooler, isPooled } from '../pooler.ts';
import { createSession } from '../session.ts';
import { type ServerConfig, serverOf } from './client.ts';
import { findDirect } from './direct.ts';

/** The URLs of a server. */
export interface ServerUrls {
  readonly url: string;
  /** Bypasses the pooler that the other URL leads to. */
  readonly directUrl?: string | undefined;
}

interface FoundServer {
  readonly server: ServerConfig;
  readonly direct: ServerConfig;
  /** Whether the connection goes through a pooler. */
  readonly pooled: boolean;
  /** Whether the server supports logical decoding. */
  readonly decodes: boolean;
}

/** The oldest supported major version of PostgreSQL. */
export const oldestServer = 15;

/**
 * Connects to the server that the URLs lead to, and checks it.
 * @throws {SetupError} if it cannot be reached or used.
 */
export async function findServer({ url, directUrl }: ServerUrls): Promise<FoundServer> {
  const server = serverOf(url);
  const { client, close } = createSession(server);
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string; encoding: string; decodes: boolean }>(
      `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
         current_setting('wal_level') = 'logical' AS decodes`,
    );
    const version = Math.trunc(Number(rows[0]?.version) / 10_000);
    if (version < oldestServer) {
      throw new SetupError(`DATABASE_URL names a PostgreSQL ${version}, but takes ${oldestServer} or later.`);
    }
    const wrong = findEncodingProblem(client, rows[0]?.encoding);
    if (wrong) throw new SetupError(`DATABASE_URL cannot be used: ${wrong.says}. ${wrong.advice}`);
    const pooled = await isPooled(client);
    if (pooled) await checkPooler(client);
    const direct = directUrl === undefined ? server : await findDirect(url, directUrl);
    return { server, direct, pooled, decodes: rows[0]?.decodes ?? false };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw connectionError(url, client, error);
  } finally {
    await close();
  }
}

/** Diagnoses a database with another encoding than UTF-8, in which not every text of a client could be stored. */
export function findEncodingProblem(
  { host, port, user, database = '' }: pg.Client,
  encoding: string | undefined,
): Diagnosis | undefined {
  if (encoding === 'UTF8') return undefined;
  const name = database === 'dovetail' ? 'dovetail_utf8' : 'dovetail';
  return {
    says: `the encoding of the database ${JSON.stringify(database)} is ${encoding}, and has to be UTF8`,
    advice: `${createDatabase({ host, port, user }, name, ['-E', 'UTF8', '-T', 'template0'])}. Name it in DATABASE_URL.`,
  };
}
