/** Receives changes by messages in the log. Loaded only if the database announces by messages. */

import type pg from 'pg';
import { pause } from '../waiting.ts';
import type { Announcer } from './announcer.ts';
import { heartbeat, isHeartbeat } from './heartbeats.ts';
import type { OnAnnouncement } from './keepListening.ts';
import { readMessages } from './slot.ts';
import { createVisibility } from './visibility.ts';

/**
 * Starts to receive messages. Once it has resolved, no message is missed about a change that snapshots do not show yet.
 *
 * A slot delivers only what commits after it was created. Changes that are in the log already, but that snapshots do not
 * show yet, would be missed: so this waits for all transactions that have begun to write.
 */
export async function hearMessages(
  direct: pg.ClientConfig,
  announcer: Announcer,
  hear: OnAnnouncement,
  lost: AbortController,
): Promise<void> {
  const seen = createVisibility(announcer.readSnapshot, lost);
  const begun = readMessages(
    direct,
    (transaction, payload) => {
      // A heartbeat announces no change that snapshots would have to show.
      if (isHeartbeat(payload)) hear(payload);
      else hear(payload, seen(transaction));
    },
    lost,
  );
  await whileAlive(begun, announcer.ping);
  await announcer.awaitWriters();
}

/**
 * Waits for as long as it takes, and checks at intervals whether the server is alive.
 * @throws what `ping` throws if it is not.
 */
async function whileAlive(awaited: Promise<void>, ping: () => Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const done = awaited.finally(() => over.abort());
  // After `ping` has failed nobody awaits it, and it rejects when the connections are closed.
  done.catch(() => {});
  while (await pause(heartbeat, over.signal)) await ping();
  await done;
}
