/** Opens a database as it is, without migrating it. */

import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { findServer } from '../../database/connection.ts';
import { createSession } from '../../database/session.ts';
import { errorText, SetupError, systemCodeOf } from '../../errors.ts';

/** How long, in milliseconds, one statement may take. */
const longestStatement = 30 * 60_000;

interface Opened {
  readonly connection: pg.ClientConfig;
  close?(): Promise<void>;
}

/**
 * Connects to the database of the settings for the time of the work.
 * @param openFolder opens the embedded one.
 * @param failed begins the message about an error of PostgreSQL.
 */
export async function withClient<Result>(
  { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR }: Config,
  openFolder: (dataDir: string) => Promise<Opened>,
  failed: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const opened: Opened =
    url === undefined
      ? await openFolder(DATA_DIR)
      : { connection: (await findServer({ url, directUrl })).direct };
  const session = createSession(opened.connection, longestStatement);
  try {
    await session.connect();
    return await work(session.client);
  } catch (error) {
    // The errors of PostgreSQL and of the system have a code.
    if (systemCodeOf(error) === undefined) throw error;
    throw new SetupError(`${failed}: ${errorText(error)}`, { cause: error });
  } finally {
    await session.close();
    await opened.close?.();
  }
}
