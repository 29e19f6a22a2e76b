/**
 * The change feed: reports whose data has changed, by any program. The triggers in the migrations announce changes; `notify.ts`
 * receives the announcements by NOTIFY, an extension by messages in the write-ahead log. To replace it: use a feed that never
 * listens. Then nothing is cached.
 *
 * Promises that a feed counts as listening only while its own heartbeats arrive. LISTEN alone is no proof: a pooler may accept
 * it and deliver nothing. So the gateway sends itself a heartbeat, at the start and every few seconds.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { errorText } from '../../errors.ts';
import type { Prisma } from '../generated/prisma/client.ts';
import { abortReason, createSharedRuns, createSignal, pause, resultWithin } from '../waiting.ts';

/** A table that has announcements. */
export type Table = Prisma.ModelName;

export type Change =
  /** Data of one user have changed. */
  | { readonly kind: 'user'; readonly userId: number; readonly table: Table }
  /** Rows of any user may have changed: of the table, or of all tables if announcements may have been missed. */
  | { readonly kind: 'all'; readonly table?: Table };

export const concernsTokens = ({ table }: Change): boolean => table === undefined || table === 'ApiToken';

export type ChangeListener = (change: Change) => void;

/** How changes are announced: by NOTIFY, or by messages in the log of the database. */
export type FeedMode = 'notify' | 'logical';

export interface ChangeFeed {
  /** How announcements arrive, or arrived last. */
  readonly mode: FeedMode;
  /** Whether announcements are proved to arrive. While they are not, nothing that was read before may be used again. */
  readonly listening: boolean;
  /**
   * Waits until all changes that could be read before the call have been announced here, and returns whether that has happened.
   * A change can be read a moment before it is announced. Absent for the embedded engine, where it cannot.
   */
  readonly catchUp?: () => Promise<boolean>;
  /** How often announcements have begun to arrive again after a loss. */
  readonly reconnects: number;
  /** Calls the listener for every change, as soon as it can be read, until the returned function is called. */
  subscribe(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

/**
 * The changes that a payload announces: `<user id> <table>`, `<user id>,<user id> <table>` if a row came from one user to another,
 * or `* <table>` if it concerns all users.
 */
export function changesOf(payload: string): Change[] {
  const [users = '', table = ''] = payload.split(' ');
  // The triggers send the names of their own tables.
  if (/^\d+(,\d+)?$/.test(users))
    return users.split(',').map((user) => ({ kind: 'user', userId: Number(user), table: table as Table }));
  return [users === '*' && table !== '' ? { kind: 'all', table: table as Table } : { kind: 'all' }];
}

/** The interval between heartbeats, in milliseconds. */
export const heartbeatInterval = 2_000;
/** How long, in milliseconds, a heartbeat may take to arrive once it is announced. */
const longestDelivery = 2_000;
/** The shortest time, in milliseconds, between two heartbeats that requests wait for: each is a write. */
const shortestGap = 5;

/** The pause after a failed attempt to listen, in milliseconds. */
const pauseAfterFailure = 500;

/** How long, in milliseconds, a start waits for announcements: the time of two heartbeats, each sent and delivered. */
const longestStart = 4 * heartbeatInterval;

/** How the payload of a heartbeat begins. It announces no change. */
export const heartbeatPrefix = 'heartbeat ';

/**
 * Begins to listen.
 * @param hear called with the payload of each announcement, once its change can be read.
 * @param lost aborted by the part that notices a lost connection. Then all connections are closed.
 */
type Connect = (hear: (payload: string) => void, lost: AbortController) => Promise<FeedConnection>;

interface FeedConnection {
  readonly mode: FeedMode;
  /** Announces something by the same mode as writes do. */
  announce(payload: string): Promise<unknown>;
}

/** Runs a statement on the server that a feed listens to, and returns its rows. */
export type Ask = <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;

/** Called with each new reason why announcements do not arrive, and with undefined when they arrive again. */
export type FeedReport = (problem: string | undefined) => void;

/**
 * Listens until the feed is closed. Resolves once announcements arrive, or when the first attempt has failed or takes long.
 * @param isHeardFirst whether every change is announced before it can be read.
 */
export async function keepListening(
  connect: Connect,
  report?: FeedReport,
  isHeardFirst = false,
): Promise<ChangeFeed> {
  const closing = new AbortController();
  const tried = createSignal();
  const audience = createAudience();
  const heartbeats = createHeartbeats();
  let problem: string | undefined;

  function note(now: string | undefined): void {
    if (now === problem || closing.signal.aborted) return;
    problem = now;
    report?.(now);
  }

  /** Listens until announcements no longer arrive, or it cannot connect. Returns why. */
  async function attempt(): Promise<string> {
    const lost = new AbortController();
    const { signal } = lost;
    const lose = () => lost.abort();
    closing.signal.addEventListener('abort', lose);
    // At once: a statement of the feed may still be under way.
    signal.addEventListener('abort', () => {
      heartbeats.giveUp();
      if (audience.listening) audience.set(false);
    });
    try {
      const connection = await connect((payload) => {
        if (!signal.aborted && !heartbeats.hear(payload)) changesOf(payload).forEach(audience.tell);
      }, lost);
      const arrives = heartbeats.begin(connection);
      do {
        if (!(await arrives()) || signal.aborted) break;
        if (audience.listening) continue;
        audience.set(true, connection.mode);
        note(undefined);
        tried.settle();
      } while (await pause(heartbeatInterval, signal));
      return abortReason(signal) ?? 'they do not arrive';
    } catch (error) {
      return abortReason(signal) ?? errorText(error);
    } finally {
      closing.signal.removeEventListener('abort', lose);
      lose();
    }
  }

  async function listen(): Promise<void> {
    while (!closing.signal.aborted) {
      note(await attempt());
      tried.settle();
      await pause(pauseAfterFailure, closing.signal);
    }
  }

  const ended = listen();
  // Not every pooler lets a connection listen. Without a feed the gateway works, and caches nothing.
  await resultWithin(longestStart, tried.promise);
  if (!audience.listening) note(problem ?? 'none has arrived so far');
  const close = async () => {
    closing.abort();
    await ended;
  };
  return Object.assign(audience, { close, ...(!isHeardFirst && { catchUp: heartbeats.catchUp }) });
}

/** Announcements that a gateway sends to itself. They prove that announcements arrive, and up to which point. */
function createHeartbeats() {
  /** The heartbeats in flight, and what to call when they arrive, or never will. */
  const expected = new Map<string, (arrived: boolean) => void>();
  /** Sends a heartbeat over the present connections, and returns whether it has arrived in time. */
  let arrives = async () => false;
  let last = Number.NEGATIVE_INFINITY;

  async function beat({ announce }: FeedConnection): Promise<boolean> {
    const payload = heartbeatPrefix + randomUUID();
    const arrived = new Promise<boolean>((settle) => expected.set(payload, settle));
    try {
      await announce(payload);
      return (await resultWithin(longestDelivery, arrived)) ?? false;
    } finally {
      expected.delete(payload);
    }
  }

  return {
    /** Notes a heartbeat that has arrived. Returns whether the payload is one, of this gateway or of another. */
    hear(payload: string): boolean {
      expected.get(payload)?.(true);
      return payload.startsWith(heartbeatPrefix);
    },
    /** Uses new connections from now on. Returns a function that sends a heartbeat and returns whether it arrives in time. */
    begin(connection: FeedConnection): () => Promise<boolean> {
      arrives = () => beat(connection);
      return arrives;
    },
    /** Fails all pending heartbeats, since the connections are lost. */
    giveUp(): void {
      for (const settle of expected.values()) settle(false);
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

/** The listeners. They are called with each change, and with `all` if announcements may have been missed. */
function createAudience() {
  const listeners = new Set<ChangeListener>();
  let connections = 0;
  const audience = {
    mode: 'notify' as FeedMode,
    listening: false,
    reconnects: 0,
    tell(change: Change): void {
      for (const listener of listeners) listener(change);
    },
    subscribe(listener: ChangeListener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    set(now: boolean, mode?: FeedMode): void {
      audience.listening = now;
      audience.mode = mode ?? audience.mode;
      if (now) audience.reconnects = connections++;
      // Everything that was read before may be stale: changes may have been missed.
      audience.tell({ kind: 'all' });
    },
  };
  return audience;
}
