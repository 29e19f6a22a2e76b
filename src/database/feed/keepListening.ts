/**
 * Listens for announcements, and reconnects whenever they no longer arrive. How they arrive is up to the module that connects:
 * `engine.ts`, `server.ts` (NOTIFY) or `logical.ts` (messages in the log).
 *
 * LISTEN is no proof that anything arrives: a pooler may accept it and deliver nothing. So the gateway sends itself a
 * heartbeat, at the start and every few seconds, and counts as listening only while its heartbeats arrive.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../errors.ts';
import { createSharedRuns } from '../sharedRuns.ts';
import { abortReason, createSignal, pause, resultWithin } from '../waiting.ts';
import { type Change, type ChangeFeed, type ChangeListener, changesOf, type FeedKind } from './changeFeed.ts';

/** The interval between heartbeats, in milliseconds. */
export const heartbeat = 2_000;
/** How long, in milliseconds, a heartbeat may take to arrive once it is announced. */
const longestDelivery = 2_000;
/** The shortest time, in milliseconds, between two heartbeats that requests wait for: each is a write. */
const shortestGap = 5;

/** The pause after a failed attempt to listen, in milliseconds, doubles after each. */
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
  announce(payload: string): Promise<unknown>;
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
  const closing = new AbortController();
  const tried = createSignal();
  const problems = createProblems(report, closing.signal);
  const audience = createAudience();
  const heartbeats = createHeartbeats();
  let delay = shortestDelay;

  function noteHeard(): void {
    delay = shortestDelay;
    problems.note(undefined);
    tried.settle();
  }

  async function listen(): Promise<void> {
    while (!closing.signal.aborted) {
      problems.note(await attempt({ connect, audience, heartbeats, closing: closing.signal, noteHeard }));
      tried.settle();
      const rest = delay;
      delay = Math.min(delay * 2, longestDelay);
      await pause(rest, closing.signal);
    }
  }

  const listening = listen();
  // Not every pooler lets a connection listen. Without a feed the gateway works, and caches nothing.
  await resultWithin(longestStart, tried.promise);
  if (!audience.isListening()) problems.noteFirst('none has arrived so far');

  return {
    get kind() {
      return audience.kind();
    },
    ...(!isHeardFirst && { catchUp: heartbeats.catchUp }),
    mayCache: (userId) => audience.isListening() && !audience.hasUnseenChange(userId),
    get listening() {
      return audience.isListening();
    },
    get reconnects() {
      return audience.reconnects();
    },
    subscribe: audience.subscribe,
    async close() {
      closing.abort();
      await listening;
    },
  };
}

interface Attempt {
  readonly connect: Connect;
  readonly audience: ReturnType<typeof createAudience>;
  readonly heartbeats: ReturnType<typeof createHeartbeats>;
  readonly closing: AbortSignal;
  /** Called when the first heartbeat has arrived. */
  readonly noteHeard: () => void;
}

/** Listens until announcements no longer arrive, or it cannot connect. Returns why. */
async function attempt({ connect, audience, heartbeats, closing, noteHeard }: Attempt): Promise<string> {
  const lost = new AbortController();
  const lose = () => lost.abort();
  closing.addEventListener('abort', lose);
  const receive = audience.begin(lost.signal);
  try {
    const connection = await connect((payload, seen) => {
      if (!lost.signal.aborted && !heartbeats.hear(payload)) receive(payload, seen);
    }, lost);
    const arrives = heartbeats.begin(connection, lost.signal);
    do {
      if (!(await arrives())) break;
      if (audience.isListening()) continue;
      audience.set(true, connection.kind);
      noteHeard();
    } while (await pause(heartbeat, lost.signal));
    return abortReason(lost.signal) ?? 'they do not arrive';
  } catch (error) {
    return abortReason(lost.signal) ?? errorText(error);
  } finally {
    closing.removeEventListener('abort', lose);
    lose();
    if (audience.isListening()) audience.set(false);
  }
}

/** How the payload of a heartbeat begins. It announces no change. */
const heartbeatPrefix = 'heartbeat ';

export const isHeartbeat = (payload: string): boolean => payload.startsWith(heartbeatPrefix);

/** Announcements that a gateway sends to itself, as proof that announcements arrive, and up to which point. */
function createHeartbeats() {
  /** The heartbeats in flight, and what to call when they arrive. */
  const expected = new Map<string, () => void>();
  /** Sends a heartbeat over the present connections, and returns whether it has arrived in time. */
  let arrives = async () => false;
  let last = Number.NEGATIVE_INFINITY;

  async function beat({ announce }: FeedConnection, lost: AbortSignal): Promise<boolean> {
    const payload = heartbeatPrefix + randomUUID();
    const waiting = new AbortController();
    const stop = () => waiting.abort();
    let heard = false;
    expected.set(payload, () => {
      heard = true;
      stop();
    });
    lost.addEventListener('abort', stop);
    try {
      await announce(payload);
      await pause(longestDelivery, waiting.signal);
    } finally {
      lost.removeEventListener('abort', stop);
      expected.delete(payload);
    }
    return heard;
  }

  return {
    /** Notes a heartbeat that has arrived. Returns whether the payload is one, of this gateway or of another. */
    hear(payload: string): boolean {
      expected.get(payload)?.();
      return isHeartbeat(payload);
    },
    /** Uses new connections from now on. Returns a function that sends a heartbeat and returns whether it arrives in time. */
    begin(connection: FeedConnection, lost: AbortSignal): () => Promise<boolean> {
      arrives = () => beat(connection, lost);
      return arrives;
    },
    /**
     * Sends a heartbeat, one for all callers that wait when it is sent: once it has arrived, everything that was announced
     * before it has arrived too.
     */
    catchUp: createSharedRuns(async () => {
      const rest = last + shortestGap - performance.now();
      if (rest > 0) await sleep(rest);
      last = performance.now();
      return arrives().catch(() => false);
    }).begin,
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

/** Those who are told of changes: of each change once snapshots show it, and of all when announcements may have been missed. */
function createAudience() {
  const listeners = new Set<ChangeListener>();
  let listening = false;
  let connections = 0;
  let kind: FeedKind = 'notify';
  let unseen = countUnseen();
  const tell = (change: Change) => {
    for (const listener of listeners) listener(change);
  };
  return {
    kind: () => kind,
    isListening: () => listening,
    reconnects: () => Math.max(connections - 1, 0),
    subscribe(listener: ChangeListener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    set(now: boolean, by = kind): void {
      listening = now;
      kind = by;
      if (now) connections++;
      // Everything that was read before may be stale: changes may have been missed.
      tell({ kind: 'all' });
    },
    /** Whether a change of the user's was announced that snapshots may not show yet. */
    hasUnseenChange: (userId: number) => unseen.affects(userId),
    /**
     * Receives from new connections. Changes that were not seen yet are forgotten, as is everything that was cached.
     * @param lost aborted when the connections are lost.
     */
    begin(lost: AbortSignal): OnAnnouncement {
      const own = countUnseen();
      unseen = own;
      return (payload, seen) => {
        for (const change of changesOf(payload)) {
          if (!seen) {
            tell(change);
            continue;
          }
          own.add(change, 1);
          seen.then(() => {
            own.add(change, -1);
            if (!lost.aborted) tell(change);
          });
        }
      };
    },
  };
}

/** Counts changes that were announced, but that snapshots may not show yet: of each user, and those that concern all users. */
function countUnseen() {
  const counts = new Map<number | 'all', number>();
  return {
    add(change: Change, more: 1 | -1): void {
      const key = change.kind === 'user' ? change.userId : 'all';
      const count = (counts.get(key) ?? 0) + more;
      if (count > 0) counts.set(key, count);
      else counts.delete(key);
    },
    affects: (userId: number) => counts.has('all') || counts.has(userId),
  };
}
