/**
 * A turn: the time in which a client has the only session of the engine for itself.
 *
 * A turn begins when the client sends something and all clients that waited before it have had their turns. It ends when the
 * engine reports that it is idle, outside of any transaction, or when the client disconnects. Meanwhile the messages of all
 * other clients wait. At the end of each turn, the session is reset to the state that the gateway relies on.
 */

import type { Mutex } from '../mutex.ts';
import type { Engine } from './engine.ts';
import type { GuestSession } from './guest.ts';
import { message, report } from './protocol.ts';
import type { NotificationListener } from './replies.ts';

/** The turns of one client. */
export interface EngineTurns {
  /** Whether it is the client's turn. */
  isHeld(): boolean;
  /** Waits for the client's turn, unless it has begun already, and restores the session of a guest. */
  acquire(): Promise<void>;
  /**
   * Resets the session and ends the turn. Must be called when the engine is idle.
   * @throws when the session of a guest could not be saved. Then the turn has not ended, and has to be aborted.
   */
  release(): Promise<void>;
  /** Ends the turn of a client that has disconnected, if it has one, and rolls back its transaction. */
  abort(): Promise<void>;
}

export interface EngineTurnOptions {
  readonly engine: Engine;
  readonly queue: Mutex;
  /** The client's session if it is a guest. The gateway's own clients change nothing that would have to be reset. */
  readonly guest: GuestSession | undefined;
  readonly onNotification: NotificationListener;
  /** Sends a message to the client. */
  send(data: Buffer): void;
  /** Called when the session is reset, just before the turn of the next client. */
  onEnd(): void;
}

export function createEngineTurns({
  engine,
  queue,
  guest,
  onNotification,
  send,
  onEnd,
}: EngineTurnOptions): EngineTurns {
  let unlock: (() => void) | undefined;

  async function resetSession(): Promise<void> {
    if (!guest) return;
    const { unheard, lost, error } = await guest.end();
    for (const channel of unheard) onNotification(channel, '');
    if (error !== undefined) throw error;
    if (lost.length > 0) {
      const text = `the embedded database ends with each statement or transaction: ${lost.join(', ')}`;
      send(report('NOTICE', '01000', text));
    }
  }

  return {
    isHeld: () => unlock !== undefined,
    async acquire() {
      if (unlock) return;
      unlock = await queue.acquire();
      await guest?.begin();
    },
    async release() {
      await resetSession();
      onEnd();
      unlock?.();
      unlock = undefined;
    },
    async abort() {
      if (!unlock) return;
      // Both fail if the engine has failed. The client is gone, so nobody has to be told.
      await engine.run(rollback, () => {}).catch(() => {});
      await resetSession().catch(() => {});
      unlock();
      unlock = undefined;
    },
  };
}

/**
 * Rolls back the transaction of a client. The Sync is needed, since after an error the engine ignores everything before it,
 * the ROLLBACK included. But a Sync would commit an unfinished batch, so a portal that does not exist is executed first: the
 * error aborts the batch.
 */
const rollback = Buffer.concat([
  message('E', 'abandoned', Buffer.alloc(4)),
  message('S'),
  message('Q', 'ROLLBACK'),
]);
