/**
 * Listens, and begins anew whenever announcements no longer arrive.
 *
 * To have said LISTEN is no proof that anything arrives: a pooler takes it and delivers nothing, and a guest of the
 * embedded engine can undo it. So the gateway announces something to itself, at the start and every few seconds,
 * and counts as listening only while that arrives.
 */

import { createSignal, pause, waitAtMost } from '../waiting.ts';
import { type Change, type ChangeFeed, type ChangeListener, changeOf, type FeedKind } from './changeFeed.ts';
import { type Announce, createHeartbeats, heartbeat } from './heartbeats.ts';
import { createUnseenChanges } from './unseenChanges.ts';

const shortestDelay = 50;
const longestDelay = 5_000;

/** How long, in milliseconds, a start waits for announcements to arrive: two heartbeats, made and under way. */
const longestStart = 4 * heartbeat;

/**
 * To be told of each announcement.
 * @param seen settles when snapshots see the change, if they may not do so yet.
 */
export type OnAnnouncement = (payload: string, seen?: Promise<void>) => void;

/**
 * Begins to listen.
 * @param lost aborted when the connections are lost, by whoever notices; they are given up then.
 */
export type Connect = (hear: OnAnnouncement, lost: AbortController) => Promise<FeedConnection>;

export interface FeedConnection {
  readonly kind: FeedKind;
  /** Announces something in the way that writes do. */
  readonly announce: Announce;
}

/**
 * Listens from now on. Given once announcements arrive, or when the first attempt failed or takes long.
 * @param isHeardFirst whether no change can be read before it is heard of.
 */
export async function keepListening(connect: Connect, isHeardFirst = false): Promise<ChangeFeed> {
  const heartbeats = createHeartbeats();
  const listeners = createListeners();
  const closing = new AbortController();
  const firstAttempt = createSignal();
  const status = createStatus(listeners.tell);
  const delay = createDelay();
  const hearing = createReceiver(heartbeats.hear, listeners.tell);

  /** Listens until announcements no longer arrive. Fails if it cannot connect. */
  async function attempt(): Promise<void> {
    const lost = new AbortController();
    const lose = () => lost.abort();
    closing.signal.addEventListener('abort', lose);
    try {
      const connection = await connect(hearing.begin(lost.signal), lost);
      const arrives = heartbeats.begin(connection.announce, lost.signal);
      do {
        if (!(await arrives())) break;
        if (status.isListening()) continue;
        delay.reset();
        status.set(true, connection.kind);
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
      await pause(delay.next(), closing.signal);
    }
  })();
  // Not every pooler lets a connection listen: the gateway works without, keeping nothing in memory.
  await waitAtMost(longestStart, firstAttempt.promise);

  return {
    get kind() {
      return status.kind();
    },
    ...(!isHeardFirst && { catchUp: heartbeats.catchUp }),
    mayCache: (userId) => status.isListening() && !hearing.hasUnseenChange(userId),
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

/** How long, in milliseconds, it is waited after an attempt that failed: longer after each. */
function createDelay() {
  let delay = shortestDelay;
  return {
    reset(): void {
      delay = shortestDelay;
    },
    next(): number {
      const now = delay;
      delay = Math.min(delay * 2, longestDelay);
      return now;
    },
  };
}

/** What is done with announcements. */
function createReceiver(isHeartbeat: (payload: string) => boolean, tell: ChangeListener) {
  let unseenChanges = createUnseenChanges();
  return {
    /** Whether a change of the user's was heard that snapshots may not see yet. */
    hasUnseenChange: (userId: number) => unseenChanges.affects(userId),
    /**
     * Hears what comes by new connections. What was in doubt before is forgotten, with everything that was known.
     * @param lost aborted when they are lost, and nothing that comes by them counts any more.
     */
    begin(lost: AbortSignal): OnAnnouncement {
      const own = createUnseenChanges();
      unseenChanges = own;
      return (payload, seen) => {
        if (lost.aborted || isHeartbeat(payload)) return;
        const change = changeOf(payload);
        if (!seen) return tell(change);
        const remove = own.add(change);
        seen.then(() => {
          remove();
          if (!lost.aborted) tell(change);
        });
      };
    },
  };
}

/** Whether announcements arrive. */
function createStatus(tell: ChangeListener) {
  let listening = false;
  let connections = 0;
  let kind: FeedKind = 'notify';
  return {
    kind: () => kind,
    isListening: () => listening,
    reconnects: () => Math.max(connections - 1, 0),
    set(now: boolean, by = kind): void {
      listening = now;
      kind = by;
      if (now) connections++;
      // Whatever was read before may be stale: what happened while nobody listened is unknown.
      tell({ kind: 'all' });
    },
  };
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
