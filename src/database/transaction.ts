/** Transactions, each on a connection of its own, which may be lost at any moment. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** What PostgreSQL has given up only in favour of another transaction: `serialization_failure`, `deadlock_detected`. */
const givenUp = new Set<unknown>(['40001', '40P01']);

/** How long, in milliseconds, what was given up waits before it is tried again. */
const pause = 50;

/**
 * Runs a transaction, and once more if PostgreSQL has given it up so that another could go on. It is at READ COMMITTED,
 * whatever the default of the role or the database: each statement sees what was committed before it, and one that had
 * to wait for a row goes on with the row as it is then.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  run: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  return retryOnConflict(() => runOnce(pool, run));
}

/** Does something, and once more if PostgreSQL has given it up so that another transaction could go on. */
export async function retryOnConflict<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !givenUp.has(error.code)) throw error;
    // The other has to take first what was let go for it.
    await sleep(pause);
    return run();
  }
}

async function runOnce<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let unusable: Error | undefined;
  // A lost connection fails the statement at hand. Without a listener it would end the process as well.
  const onLost = (error: Error) => {
    unusable = error;
  };
  client.on('error', onLost);
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    const result = await run(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection that does not even take this, such as one that waits for the server, is of no more use.
    await client.query('ROLLBACK').catch(onLost);
    throw error;
  } finally {
    // The pool closes what is given back with an error, and listens itself from here on.
    client.release(unusable);
    client.off('error', onLost);
  }
}
