/**
 * A turn: the time for which the engine's one session belongs to one client.
 *
 * It begins when the client sends something and everybody who asked earlier has had a turn. It ends when the engine
 * says that it is idle, outside of any transaction, or when the client leaves. Meanwhile the messages of all other
 * clients wait. Whoever had the turn, the next one finds the session as the gateway relies on it.
 */

import type { Mutex } from '../mutex.ts';
import type { Engine } from './engine.ts';
import type { GuestSession } from './guest.ts';
import { message, report } from './protocol.ts';
import type { NotificationListener } from './replies.ts';

/** The turns of one client, of which it has one at a time. */
export interface EngineTurns {
  /** Whether the engine is the client's. */
  isHeld(): boolean;
  /** Waits for the engine, unless it is the client's already, and gives a guest back what it has set. */
  acquire(): Promise<void>;
  /**
   * Makes the session what it was, and lets the next client have the engine. For when the engine is idle.
   * @throws why a guest cannot go on, if it cannot. The turn is not over then: it has to be abandoned.
   */
  release(): Promise<void>;
  /** Ends the turn of a client that is gone, if it has one, and with it whatever it was in the midst of. */
  abort(): Promise<void>;
}

export interface EngineTurnOptions {
  readonly engine: Engine;
  readonly queue: Mutex;
  /** The client's session if it is a guest. The gateway's own clients leave nothing that has to be put back. */
  readonly guest: GuestSession | undefined;
  readonly onNotification: NotificationListener;
  /** Sends a message to the client. */
  send(data: Buffer): void;
  /** Called when the session is put back, just before the next client has the engine. */
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
  let giveUp: (() => void) | undefined;

  async function putBack(): Promise<void> {
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
    isHeld: () => giveUp !== undefined,
    async acquire() {
      if (giveUp) return;
      giveUp = await queue.acquire();
      await guest?.begin();
    },
    async release() {
      await putBack();
      onEnd();
      giveUp?.();
      giveUp = undefined;
    },
    async abort() {
      if (!giveUp) return;
      // An engine that has failed does neither, and there is nobody left to tell.
      await engine.run(breakOff, () => {}).catch(() => {});
      await putBack().catch(() => {});
      giveUp();
      giveUp = undefined;
    },
  };
}

/**
 * Ends whatever a client was in the midst of. A batch is broken first, by executing a portal that does not exist:
 * the Sync, without which the engine would pass over the ROLLBACK after an error, would otherwise commit it.
 */
const breakOff = Buffer.concat([
  message('E', 'abandoned', Buffer.alloc(4)),
  message('S'),
  message('Q', 'ROLLBACK'),
]);
