/**
 * Listens for announcements, and reconnects whenever they no longer arrive.
 *
 * LISTEN is no proof that anything arrives: a pooler may accept it and deliver nothing, and another client of the embedded
 * engine can undo it. So the gateway sends itself a heartbeat, at the start and every few seconds, and counts as listening
 * only while its heartbeats arrive.
 */

import { errorText } from '../../errors.ts';
import { abortReason, createSignal, pause, resultWithin } from '../waiting.ts';
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

/** Called with why announcements do not arrive, whenever that has changed; with undefined when they arrive again. */
export type FeedReport = (problem: string | undefined) => void;

interface ListeningOptions {
  /** Whether every change is announced before it can be read. */
  readonly isHeardFirst?: boolean;
  readonly report?: FeedReport | undefined;
}

/** Listens until the feed is closed. Resolves once announcements arrive, or when the first attempt has failed or takes long. */
export async function keepListening(
  connect: Connect,
  { isHeardFirst = false, report }: ListeningOptions = {},
): Promise<ChangeFeed> {
  const heartbeats = createHeartbeats();
  const listeners = createListeners();
  const closing = new AbortController();
  const firstAttempt = createSignal();
  const status = createStatus(listeners.tell);
  const delay = createDelay();
  const hearing = createReceiver(heartbeats.hear, listeners.tell);
  const problems = createProblems(report, closing.signal);

  const attempt = createAttempt({ connect, heartbeats, hearing, status, closing: closing.signal }, () => {
    delay.reset();
    problems.note(undefined);
    firstAttempt.settle();
  });

  const attempts = (async () => {
    while (!closing.signal.aborted) {
      problems.note(await attempt());
      firstAttempt.settle();
      await pause(delay.next(), closing.signal);
    }
  })();
  // Not every pooler lets a connection listen. Without a feed the gateway works, and caches nothing.
  await resultWithin(longestStart, firstAttempt.promise);
  if (!status.isListening()) problems.noteFirst('none has arrived so far');

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

interface Attempts {
  readonly connect: Connect;
  readonly heartbeats: ReturnType<typeof createHeartbeats>;
  readonly hearing: ReturnType<typeof createReceiver>;
  readonly status: ReturnType<typeof createStatus>;
  readonly closing: AbortSignal;
}

/**
 * Makes a function that listens until announcements no longer arrive, or it cannot connect, and returns why.
 * @param onHeard called when the first announcement has arrived.
 */
function createAttempt({ connect, heartbeats, hearing, status, closing }: Attempts, onHeard: () => void) {
  return async (): Promise<string> => {
    const lost = new AbortController();
    const lose = () => lost.abort();
    closing.addEventListener('abort', lose);
    try {
      const connection = await connect(hearing.begin(lost.signal), lost);
      const arrives = heartbeats.begin(connection.announce, lost.signal);
      do {
        if (!(await arrives())) break;
        if (status.isListening()) continue;
        status.set(true, connection.kind);
        onHeard();
      } while (await pause(heartbeat, lost.signal));
      return abortReason(lost.signal) ?? 'they do not arrive';
    } catch (error) {
      return abortReason(lost.signal) ?? errorText(error);
    } finally {
      closing.removeEventListener('abort', lose);
      lose();
      if (status.isListening()) status.set(false);
    }
  };
}

/** Reports why announcements do not arrive, and the same reason only once. */
function createProblems(report: FeedReport | undefined, closing: AbortSignal) {
  let last: string | undefined;
  const note = (problem: string | undefined): void => {
    if (problem === last || closing.aborted) return;
    last = problem;
    report?.(problem);
  };
  return { note, noteFirst: (problem: string) => note(last ?? problem) };
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
