/**
 * Listens, and begins anew whenever announcements no longer arrive.
 *
 * To have said LISTEN is no proof that anything arrives: a pooler takes it and delivers nothing, and a guest of the
 * embedded engine can undo it. So the gateway announces something to itself, at the start and every few seconds,
 * and counts as listening only while that arrives.
 */

import { type Change, type ChangeFeed, type ChangeListener, changeOf } from './changeFeed.ts';
import { type Announce, createHeartbeats, heartbeat, pause } from './heartbeats.ts';

const shortestDelay = 50;
const longestDelay = 5_000;

/**
 * Begins to listen.
 * @param hear is told of each announcement.
 * @param lost aborted when the connections are lost, by whoever notices; they are given up then.
 */
export type Connect = (hear: (payload: string) => void, lost: AbortController) => Promise<Announce>;

export async function keepListening(connect: Connect): Promise<ChangeFeed> {
  const heartbeats = createHeartbeats();
  const listeners = createListeners();
  const closing = new AbortController();
  const firstAttempt = createSignal();
  const status = createStatus(listeners.tell);
  let delay = shortestDelay;

  function hear(payload: string): void {
    if (!heartbeats.hear(payload)) listeners.tell(changeOf(payload));
  }

  /** Listens until announcements no longer arrive. Fails if it cannot connect. */
  async function attempt(): Promise<void> {
    const lost = new AbortController();
    const lose = () => lost.abort();
    closing.signal.addEventListener('abort', lose);
    try {
      const announce = await connect(hear, lost);
      do {
        if (!(await heartbeats.arrives(announce, lost.signal))) break;
        if (status.isListening()) continue;
        delay = shortestDelay;
        status.set(true);
        firstAttempt.settle();
      } while (await pause(heartbeat, lost.signal));
    } finally {
      closing.signal.removeEventListener('abort', lose);
      lose();
      if (status.isListening()) status.set(false);
    }
  }

  const attempts = (async () => {
    while (!closing.signal.aborted) {
      await attempt().catch(() => {});
      firstAttempt.settle();
      await pause(delay, closing.signal);
      delay = Math.min(delay * 2, longestDelay);
    }
  })();
  // Not every pooler lets a connection listen: the gateway works without, keeping nothing in memory.
  await firstAttempt.promise;

  return {
    get listening() {
      return status.isListening();
    },
    get reconnects() {
      return status.reconnects();
    },
    subscribe: listeners.add,
    async close() {
      closing.abort();
      await attempts;
    },
  };
}

/** Whether announcements arrive. */
function createStatus(tell: ChangeListener) {
  let listening = false;
  let connections = 0;
  return {
    isListening: () => listening,
    reconnects: () => Math.max(connections - 1, 0),
    set(now: boolean): void {
      listening = now;
      if (now) connections++;
      // Whatever was read before may be stale: what happened while nobody listened is unknown.
      tell({ kind: 'all' });
    },
  };
}

/** A promise, and the function that settles it. */
function createSignal() {
  let settle = () => {};
  const promise = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}

function createListeners() {
  const listeners = new Set<ChangeListener>();
  return {
    add(listener: ChangeListener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    tell(change: Change) {
      for (const listener of listeners) listener(change);
    },
  };
}
