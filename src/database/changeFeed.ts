/**
 * The change feed: whose data changed, whoever changed it. The triggers in the migrations announce it; this
 * module listens, in one way for both engines.
 *
 * To have said LISTEN is no proof that anything arrives: a pooler takes it and delivers nothing, and a guest of the
 * embedded engine can undo it. So the gateway announces something to itself, at the start and every few seconds,
 * and counts as listening only while that arrives.
 */

import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { EmbeddedPostgres } from './embedded/embedded.ts';
import type { Prisma } from './generated/prisma/client.ts';
import { isPooled, shareSessions } from './pooler.ts';

/** A table that has announcements. */
export type Table = Prisma.ModelName;

export type Change =
  /** Something of one user changed. */
  | { readonly kind: 'user'; readonly userId: number; readonly table: Table }
  /** Anything may have changed: anybody's rows of the table, or of all tables where announcements may have been missed. */
  | { readonly kind: 'all'; readonly table?: Table };

/** Whether tokens may have changed. */
export const concernsTokens = ({ table }: Change): boolean => table === undefined || table === 'ApiToken';

export type ChangeListener = (change: Change) => void;

export interface ChangeFeed {
  /** Whether announcements are known to arrive. While they aren't, nothing that was read before may be trusted. */
  readonly listening: boolean;
  /** How often announcements began to arrive again. */
  readonly reconnects: number;
  /** Calls the listener for every change from now on, until the returned function is called. */
  subscribe(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

const channel = 'dovetail';

/** How often, in milliseconds, it is tried whether announcements arrive. */
const heartbeat = 2_000;
/** How long, in milliseconds, the announcement of a heartbeat may be under way once it is made. */
const longestDelivery = 2_000;
const shortestDelay = 50;
const longestDelay = 5_000;

/** Announces something in the way that writes do. */
type Announce = (payload: string) => Promise<unknown>;

/**
 * Begins to listen.
 * @param hear is told of each announcement.
 * @param lost aborted when the connections are lost, by whoever notices; they are given up then.
 */
type Connect = (hear: (payload: string) => void, lost: AbortController) => Promise<Announce>;

/**
 * Listens to the embedded engine, in the process that runs it. Its one session does one thing at a time, so that a
 * heartbeat may wait for as long as somebody else's transaction is open; nothing can change meanwhile.
 */
export function listenToEngine({ connection, listeners }: EmbeddedPostgres): Promise<ChangeFeed> {
  return keepListening(async (hear, lost) => {
    const listener = (from: string, payload: string) => {
      if (from === channel) hear(payload);
    };
    listeners.add(listener);
    lost.signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    const client = await openConnection(connection, lost);
    await client.query(`LISTEN ${channel}`);
    return (payload) => client.query(`NOTIFY ${channel}, '${payload}'`);
  });
}

/**
 * Listens to a server, on a connection that does nothing else: whatever a pooler lets it execute could bring along
 * what arrived for somebody else. Heartbeats go over a connection of their own, made like those of the pool, where
 * they would have to wait in overload. It is made anew now and then: when the address has come to lead to another
 * server, connections to the one before go on hearing each other there, while the pool's leave it.
 * @param beats how many heartbeats go over one connection.
 */
export function listenToServer(connection: pg.ClientConfig, beats = 15): Promise<ChangeFeed> {
  const bounded = { ...connection, connectionTimeoutMillis: heartbeat, query_timeout: heartbeat };
  return keepListening(async (hear, lost) => {
    let announcing = new AbortController();
    lost.signal.addEventListener('abort', () => announcing.abort(), { once: true });
    let beatsLeft = beats;
    const [listener, firstAnnouncer] = await Promise.all([
      openConnection(bounded, lost),
      openConnection(bounded, announcing),
    ]);
    let announcer = firstAnnouncer;
    // A LISTEN would stay in a session that other clients use, to whom its announcements would go.
    if ((await isPooled(listener)) && (await shareSessions(listener, announcer)))
      throw new Error('the pooler does not give each connection a session of its own');
    listener.on('notification', ({ payload = '' }) => hear(payload));
    await listener.query(`LISTEN ${channel}`);
    return async (payload) => {
      if (beatsLeft-- === 0) {
        announcing.abort();
        announcing = new AbortController();
        announcer = await openConnection(bounded, announcing);
        beatsLeft = beats - 1;
      }
      return announcer.query(`NOTIFY ${channel}, '${payload}'`);
    };
  });
}

async function openConnection(connection: pg.ClientConfig, lost: AbortController): Promise<pg.Client> {
  const socket = new Socket();
  const client = new pg.Client({ ...connection, stream: () => socket });
  const lose = () => lost.abort();
  client.on('error', lose).once('end', lose);
  // Not `client.end()`, which waits for what a dead connection never says.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await client.connect();
  return client;
}

/** Listens, and begins anew whenever announcements no longer arrive. */
async function keepListening(connect: Connect): Promise<ChangeFeed> {
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

/** How the announcement of a heartbeat begins, which says nothing of any change. */
const heartbeatPrefix = 'heartbeat ';

/** Announcements that a gateway makes to itself. */
function createHeartbeats() {
  /** The heartbeat that is under way, and what to do when it arrives. */
  let expected = { payload: '', arrived: () => {} };
  return {
    /** Takes note of what arrived if it is a heartbeat. Those of other gateways are of no interest. */
    hear(payload: string): boolean {
      if (payload === expected.payload) expected.arrived();
      return payload.startsWith(heartbeatPrefix);
    },
    /** Whether a heartbeat that is announced now arrives in time. */
    async arrives(announce: Announce, lost: AbortSignal): Promise<boolean> {
      const waiting = new AbortController();
      const stop = () => waiting.abort();
      let heard = false;
      const payload = heartbeatPrefix + randomUUID();
      expected = {
        payload,
        arrived() {
          heard = true;
          stop();
        },
      };
      lost.addEventListener('abort', stop);
      await announce(payload);
      await pause(longestDelivery, waiting.signal);
      lost.removeEventListener('abort', stop);
      return heard;
    },
  };
}

/** Waits, in milliseconds. Gives false at once when the signal aborts. */
function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return sleep(milliseconds, true, { signal }).catch(() => false);
}

/** What a trigger announced: `<user id> <table>`, or `* <table>` when it concerns everybody. */
function changeOf(payload: string): Change {
  const [user = '', table = ''] = payload.split(' ');
  // The triggers send the names of their own tables.
  if (/^\d+$/.test(user)) return { kind: 'user', userId: Number(user), table: table as Table };
  return user === '*' && table !== '' ? { kind: 'all', table: table as Table } : { kind: 'all' };
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
