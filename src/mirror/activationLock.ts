/**
 * Has the activations of one mirrored account take turns, in this process and in all others over the same database: with
 * two under way at once, the upstream could end with the one and the mirror with the other.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { ServerConfig } from '../database/connection/client.ts';
import { createMutex } from '../database/mutex.ts';
import { createSession } from '../database/session.ts';
import { clientError, messages } from '../errors.ts';

/** How long, in milliseconds, an activation waits for its turn. */
export const longestWait = 20_000;

/** How long, in milliseconds, the server leaves its turn to a gateway that is not heard of. */
const longestTurn = 60_000;

/** The lock under which one process activates, together with the account's id: any number that nothing else here uses. */
export const activationLockKey = 0x507e7a12;

/** PostgreSQL's code for a lock that could not be had in time: `lock_not_available`. */
const notAvailable = '55P03';

export type WithActivationLock = <T>(run: () => Promise<T>) => Promise<T>;

/** @param direct how a session of one's own is made; undefined for an embedded database, which no other process can have open. */
export function createActivationLock(direct: ServerConfig | undefined, userId: number): WithActivationLock {
  const queue = createMutex();
  return async (run) => {
    const until = Date.now() + longestWait;
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

/** Runs it on a connection beside the pool, whose connections what it does may all need. */
async function whileLocked<T>(
  direct: ServerConfig,
  userId: number,
  until: number,
  run: () => Promise<T>,
): Promise<T> {
  const { client, close } = createSession(direct, 2 * longestWait);
  try {
    await client.connect();
    // Only in a transaction is a session, and so the lock, one's own behind every pooler.
    await client.query(
      `BEGIN; SET LOCAL lock_timeout = ${Math.max(1, until - Date.now())}; SET LOCAL idle_in_transaction_session_timeout = ${longestTurn}`,
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
