/** Hearing of changes by messages in the log. Loaded only where a database announces in that way. */

import cluster from 'node:cluster';
import type pg from 'pg';
import { pause } from '../waiting.ts';
import type { Announcer } from './announcer.ts';
import { heartbeat, isHeartbeat } from './heartbeats.ts';
import type { OnAnnouncement } from './keepListening.ts';
import type { ReadMessages } from './slot.ts';
import { createVisibility } from './visibility.ts';

/**
 * Begins to hear messages. From when this is done, none is missed of a change that snapshots do not see yet.
 *
 * A slot gives what commits once it is there. What is in the log before it, and is not seen yet, nobody would tell of: so
 * it is waited for everybody who has begun to write.
 */
export async function hearMessages(
  direct: pg.ClientConfig,
  announcer: Announcer,
  hear: OnAnnouncement,
  lost: AbortController,
): Promise<void> {
  const seen = createVisibility(announcer.findVisible, lost);
  const { readMessages } = await loadReader();
  const begun = readMessages(
    direct,
    (transaction, payload) => {
      // A heartbeat says nothing of any change that would have to be seen.
      if (isHeartbeat(payload)) hear(payload);
      else hear(payload, seen(transaction));
    },
    lost,
  );
  await whileAlive(begun, announcer.ping);
  await announcer.awaitWriters();
}

/** A worker is told by the process that started it: one slot is enough for all of them. */
async function loadReader(): Promise<{ readMessages: ReadMessages }> {
  return cluster.isWorker ? import('./workerFeedClient.ts') : import('./slot.ts');
}

/**
 * Waits, for however long it takes, with a look now and then at whether the server is there.
 * @throws what `ping` does when it is not.
 */
async function whileAlive(awaited: Promise<void>, ping: () => Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const done = awaited.finally(() => over.abort());
  // Given up together with the connections, when nobody waits for it any more.
  done.catch(() => {});
  while (await pause(heartbeat, over.signal)) await ping();
  await done;
}
