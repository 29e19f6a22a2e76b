/**
 * A lock around the activations of a mirrored account, in all processes over the database: if two ran at once, the upstream
 * could end with one template active and the mirror with the other.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { ServerConfig } from '../database/connection/client.ts';
import { createMutex } from '../database/mutex.ts';
import { createSession } from '../database/session.ts';
import { clientError, messages } from '../errors.ts';

/** How long, in milliseconds, an activation waits for the lock. */
export const longestWait = 20_000;

/** After how many milliseconds the server takes the lock from a gateway that is gone. */
const longestTurn = 60_000;

/** The key of the advisory lock, beside the account's id. Nothing else here uses the number. */
const activationLockKey = 0x507e7a12;

/** PostgreSQL's code for a lock timeout: `lock_not_available`. */
const notAvailable = '55P03';

export type WithActivationLock = <T>(run: () => Promise<T>) => Promise<T>;

/** @param direct the connection for a session of its own; undefined for an embedded database, which no other process can have open. */
export function createActivationLock(direct: ServerConfig | undefined, userId: number): WithActivationLock {
  const queue = createMutex();
  return async (run) => {
    const until = performance.now() + longestWait;
    const taking = queue.acquire();
    const end = await Promise.race([taking, sleep(longestWait, undefined, { ref: false })]);
    if (!end) {
      taking.then((pass) => pass());
      throw busy();
    }
    try {
      return direct === undefined ? await run() : await whileLocked(direct, userId, until, run);
    } finally {
      end();
    }
  };
}

/** Holds the lock on a connection outside of the pool, while the function may need all connections of the pool. */
async function whileLocked<T>(
  direct: ServerConfig,
  userId: number,
  until: number,
  run: () => Promise<T>,
): Promise<T> {
  const { client, close } = createSession(direct, 2 * longestWait);
  try {
    await client.connect();
    // In a transaction, since behind a pooler a session, and with it a lock, belongs to a client for one transaction only.
    await client.query(
      `BEGIN; SET LOCAL lock_timeout = ${Math.max(1, Math.ceil(until - performance.now()))}; SET LOCAL idle_in_transaction_session_timeout = ${longestTurn}`,
    );
    await client
      .query('SELECT pg_advisory_xact_lock($1, $2)', [activationLockKey, userId])
      .catch((error: unknown) => {
        throw error instanceof pg.DatabaseError && error.code === notAvailable ? busy() : error;
      });
    return await run();
  } finally {
    await close();
  }
}

const busy = () => clientError('SERVICE_UNAVAILABLE', messages.tooBusy);
