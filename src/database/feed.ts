/**
 * The change feed: whose data changed, whoever changed it. The triggers in the migrations announce it; this
 * module listens, in one way for both engines.
 */

import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Prisma } from '../generated/prisma/client.ts';
import type { EmbeddedPostgres } from './embedded.ts';

/** A table that has announcements. */
export type Table = Prisma.ModelName;

export type Change =
  /** Something of one user changed. */
  | { readonly kind: 'user'; readonly userId: number; readonly table: Table }
  /** Anything may have changed: announcements may have been missed, or a table was emptied. */
  | { readonly kind: 'all' };

export type ChangeListener = (change: Change) => void;

export interface ChangeFeed {
  /** Whether announcements arrive. While they don't, nothing that was read before may be trusted. */
  readonly listening: boolean;
  /** How often the connection was lost and made again. */
  readonly reconnects: number;
  /** Calls the listener for every change from now on, until the returned function is called. */
  subscribe(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

const channel = 'dovetail';

/** How often, in milliseconds, the connection is asked whether it still lives: a cut cable says nothing. */
const heartbeat = 2_000;
const shortestDelay = 50;
const longestDelay = 5_000;

/** Listens to the embedded engine, in the process that runs it. */
export async function followEngine({ engine, listeners: heard }: EmbeddedPostgres): Promise<ChangeFeed> {
  const listeners = createListeners();
  const hear = (from: string, payload: string) => {
    if (from === channel) listeners.tell(changeOf(payload));
  };
  heard.add(hear);
  await engine.exec(`LISTEN ${channel}`);
  return {
    listening: true,
    reconnects: 0,
    subscribe: listeners.add,
    async close() {
      heard.delete(hear);
    },
  };
}

/** Listens to a server on a connection of its own, and makes a new one whenever it is lost. */
export async function followServer(connection: pg.ClientConfig): Promise<ChangeFeed> {
  const listeners = createListeners();
  const closing = new AbortController();
  const firstAttempt = createSignal();
  let listening = false;
  let connections = 0;

  /** Listens until the connection is lost. Told when announcements arrive, and fails if they never do. */
  async function listen(onListening: () => void): Promise<void> {
    const socket = new Socket();
    const client = new pg.Client({
      ...connection,
      stream: () => socket,
      connectionTimeoutMillis: heartbeat,
      query_timeout: heartbeat,
    });
    const lost = new AbortController();
    const lose = () => {
      lost.abort();
      // Not `client.end()`, which waits for an answer that a dead connection never gives.
      socket.destroy();
    };
    client.on('error', lose).once('end', lose);
    client.on('notification', ({ payload = '' }) => listeners.tell(changeOf(payload)));
    closing.signal.addEventListener('abort', lose);
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      connections++;
      listening = true;
      // What happened while nobody listened is unknown.
      listeners.tell({ kind: 'all' });
      onListening();
      while (await pause(heartbeat, lost.signal)) await client.query('SELECT 1');
    } finally {
      closing.signal.removeEventListener('abort', lose);
      lose();
      if (listening) {
        listening = false;
        listeners.tell({ kind: 'all' });
      }
    }
  }

  const following = (async () => {
    let delay = shortestDelay;
    while (!closing.signal.aborted) {
      await listen(() => {
        delay = shortestDelay;
        firstAttempt.settle();
      }).catch(() => {});
      firstAttempt.settle();
      await pause(delay, closing.signal);
      delay = Math.min(delay * 2, longestDelay);
    }
  })();
  // Not every pooler lets a connection listen: the gateway works without, keeping nothing in memory.
  await firstAttempt.promise;

  return {
    get listening() {
      return listening;
    },
    get reconnects() {
      return Math.max(connections - 1, 0);
    },
    subscribe: listeners.add,
    async close() {
      closing.abort();
      await following;
    },
  };
}

/** Waits, in milliseconds. Answers false at once when the signal aborts. */
function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return sleep(milliseconds, true, { signal }).catch(() => false);
}

/** What a trigger announced: `<user id> <table>`, or `* <table>` when it concerns everybody. */
function changeOf(payload: string): Change {
  const [user = '', table = ''] = payload.split(' ');
  if (!/^\d+$/.test(user)) return { kind: 'all' };
  // The triggers send the names of their own tables.
  return { kind: 'user', userId: Number(user), table: table as Table };
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
