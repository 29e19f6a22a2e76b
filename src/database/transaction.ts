/** Transactions, each on a connection of its own, which may be lost at any moment. */

import pRetry from 'p-retry';
import type pg from 'pg';
import { systemCodeOf } from '../errors.ts';

/** The errors of a transaction that only has to be repeated: `serialization_failure` and `deadlock_detected`. */
const givenUp = new Set<unknown>(['40001', '40P01']);

/** The pause, in milliseconds, before the repetition. */
const pause = 50;

/** Runs a function in a transaction, such as one that only the holder of a lease can begin. */
export type Transaction = <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>;

/**
 * Runs a transaction, and repeats it once after a conflict with another one. It uses READ COMMITTED, even if the role or the
 * database has another default: each statement sees what was committed before it, and a statement that had to wait for a row
 * continues with the new version of the row.
 */
export const inTransaction = <T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  retryOnConflict(() => runOnce(pool, run));

/**
 * Runs a function, and repeats it once if PostgreSQL has cancelled its transaction in favour of another, after that has taken the
 * released locks.
 */
export const retryOnConflict = <T>(run: () => Promise<T>): Promise<T> =>
  pRetry(run, {
    retries: 1,
    minTimeout: pause,
    shouldRetry: ({ error }) => givenUp.has(systemCodeOf(error)),
  });

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
    // If even this fails, such as on a silent connection, the connection is closed.
    await client.query('ROLLBACK').catch(onLost);
    throw error;
  } finally {
    // With an error, the pool closes the connection. From here on the pool listens to its errors.
    client.release(unusable);
    client.off('error', onLost);
  }
}
