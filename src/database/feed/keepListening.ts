/**
 * Listens for announcements, and reconnects whenever they no longer arrive.
 *
 * LISTEN is no proof that anything arrives: a pooler may accept it and deliver nothing, and another client of the embedded
 * engine can undo it. So the gateway sends itself a heartbeat, at the start and every few seconds, and counts as listening
 * only while its heartbeats arrive.
 */

import { createSignal, pause, resultWithin } from '../waiting.ts';
import { type Change, type ChangeFeed, type ChangeListener, changesOf, type FeedKind } from './changeFeed.ts';
import { type Announce, createHeartbeats, heartbeat } from './heartbeats.ts';
import { createUnseenChanges } from './unseenChanges.ts';

const shortestDelay = 50;
const longestDelay = 5_000;

/** How long, in milliseconds, a start waits for announcements: the time of two heartbeats, each sent and delivered. */
const longestStart = 4 * heartbeat;

/**
 * Called with each announcement.
 * @param seen settles once snapshots show the change. Absent if they do already.
 */
export type OnAnnouncement = (payload: string, seen?: Promise<void>) => void;

/**
 * Begins to listen.
 * @param lost aborted by whichever part finds that a connection is lost. All of them are closed then.
 */
export type Connect = (hear: OnAnnouncement, lost: AbortController) => Promise<FeedConnection>;

export interface FeedConnection {
  readonly kind: FeedKind;
  /** Announces something by the same mode as writes do. */
  readonly announce: Announce;
}

/**
 * Listens until the feed is closed. Resolves once announcements arrive, or when the first attempt has failed or takes long.
 * @param isHeardFirst whether every change is announced before it can be read.
 */
export async function keepListening(connect: Connect, isHeardFirst = false): Promise<ChangeFeed> {
  const heartbeats = createHeartbeats();
  const listeners = createListeners();
  const closing = new AbortController();
  const firstAttempt = createSignal();
  const status = createStatus(listeners.tell);
  const delay = createDelay();
  const hearing = createReceiver(heartbeats.hear, listeners.tell);

  /** Listens until announcements no longer arrive. Rejects if it cannot connect. */
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
  // Not every pooler lets a connection listen. Without a feed the gateway works, and caches nothing.
  await resultWithin(longestStart, firstAttempt.promise);

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

/** The pause, in milliseconds, after a failed attempt: longer after each (exponential backoff). */
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

/** Handles announcements: passes each change on once snapshots show it. */
function createReceiver(isHeartbeat: (payload: string) => boolean, tell: ChangeListener) {
  let unseenChanges = createUnseenChanges();
  return {
    /** Whether a change of the user's was announced that snapshots may not show yet. */
    hasUnseenChange: (userId: number) => unseenChanges.affects(userId),
    /**
     * Receives from new connections. Changes that were not seen yet are forgotten, as is everything that was cached.
     * @param lost aborted when the connections are lost. Announcements that they still deliver are ignored.
     */
    begin(lost: AbortSignal): OnAnnouncement {
      const own = createUnseenChanges();
      unseenChanges = own;
      return (payload, seen) => {
        if (lost.aborted || isHeartbeat(payload)) return;
        for (const change of changesOf(payload)) {
          if (!seen) {
            tell(change);
            continue;
          }
          const remove = own.add(change);
          seen.then(() => {
            remove();
            if (!lost.aborted) tell(change);
          });
        }
      };
    },
  };
}

/** Remembers whether announcements arrive, and tells listeners when that changes. */
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
      // Everything that was read before may be stale: changes may have been missed.
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
