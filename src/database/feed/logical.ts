/**
 * Receives changes by messages in the log. Loaded only if the database announces by messages.
 *
 * A message may be read from the log before snapshots show what its transaction has written: it is in the log first, and may
 * wait there for a synchronous standby. So each change is passed on with a promise of when it is seen.
 */

import type pg from 'pg';
import { createSignal, pause } from '../waiting.ts';
import { heartbeat, isHeartbeat, type OnAnnouncement } from './keepListening.ts';
import type { Ask } from './server.ts';
import { readMessages } from './slot.ts';

/**
 * Starts to receive messages. Once it has resolved, no message is missed about a change that snapshots do not show yet.
 *
 * A slot delivers only what commits after it was created. Changes that are in the log already, but that snapshots do not
 * show yet, would be missed: so this waits for all transactions that have begun to write.
 * @param ask reads snapshots.
 */
export async function hearMessages(
  direct: pg.ClientConfig,
  ask: Ask,
  hear: OnAnnouncement,
  lost: AbortController,
): Promise<void> {
  const seen = createVisibility(() => readSnapshot(ask), lost);
  const begun = readMessages(
    direct,
    (transaction, payload) => {
      // A heartbeat announces no change that snapshots would have to show.
      if (isHeartbeat(payload)) hear(payload);
      else hear(payload, seen(transaction));
    },
    lost,
  );
  await whileAlive(begun, () => ask('SELECT 1'));
  await awaitWriters(ask, lost.signal);
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

/** Waits until all transactions that have begun to write by now have ended. */
export async function awaitWriters(ask: Ask, lost: AbortSignal): Promise<void> {
  // A transaction id of our own, which comes after theirs. The upper bound of a snapshot would not do: the last writer may be above it.
  const [mark] = await ask<{ own: string }>('SELECT pg_current_xact_id()::text AS own');
  const areOver = async () => {
    const [row] = await ask<{ over: boolean }>(
      'SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 AS over',
      [mark?.own],
    );
    return row?.over ?? false;
  };
  while (!(await areOver())) await pause(20, lost);
}

/** The longest time, in milliseconds, between two snapshots if many transactions come: one serves all that come meanwhile. */
const longestRest = 10;
/** The times between them if none is over, of which each is twice the one before. */
const shortestRetry = 1;
const longestRetry = 50;

/**
 * Makes a function that waits until a transaction is seen: until every snapshot from then on shows what it has written, or
 * that it has failed. It takes the lower 32 bits of the transaction's id.
 * @param readSnapshot takes a new snapshot.
 * @param lost aborted when none can be taken any more: nobody is told then, and whoever waits goes on waiting.
 */
export function createVisibility(
  readSnapshot: () => Promise<Snapshot>,
  lost: AbortController,
): (transaction: number) => Promise<void> {
  const awaited = new Map<number, ReturnType<typeof createSignal>>();
  let retry = shortestRetry;
  let nextSnapshot = 0;

  /** Tells those who wait for transactions that are over. */
  async function tell(): Promise<void> {
    const snapshot = await readSnapshot();
    const over = [...awaited].filter(([transaction]) => isOver(transaction, snapshot));
    for (const [transaction, signal] of over) {
      awaited.delete(transaction);
      signal.settle();
    }
    nextSnapshot = performance.now() + (over.length > 0 ? Math.min(over.length, longestRest) : retry);
    retry = over.length > 0 ? shortestRetry : Math.min(retry * 2, longestRetry);
  }

  async function tellAll(): Promise<void> {
    while (awaited.size > 0 && !lost.signal.aborted) {
      const wait = nextSnapshot - performance.now();
      if (wait <= 0 || (await pause(wait, lost.signal))) await tell();
    }
  }

  return (transaction) => {
    const known = awaited.get(transaction);
    if (known) return known.promise;
    const isTelling = awaited.size > 0;
    const signal = createSignal();
    awaited.set(transaction, signal);
    // Not for each message: one snapshot serves those that come together.
    if (!isTelling) setImmediate(() => tellAll().catch((error: unknown) => lost.abort(error)));
    return signal.promise;
  };
}

/** What `pg_current_snapshot()` says. */
export interface Snapshot {
  /** All transactions before this one are over. */
  readonly xmin: number;
  /** This transaction and those after it are not over. */
  readonly xmax: number;
  /** Those between the two that are not over. */
  readonly underway: ReadonlySet<number>;
}

/** Reads the text of a snapshot: `<xmin>:<xmax>:<those underway>`, as in `10:20:10,14,15`. */
export function parseSnapshot(text: string): Snapshot {
  const [xmin = '', xmax = '', list = ''] = text.split(':');
  const underway = list === '' ? [] : list.split(',').map(Number);
  return { xmin: Number(xmin), xmax: Number(xmax), underway: new Set(underway) };
}

/**
 * Whether a transaction is over for a snapshot: whether that shows what it has written, or that it has failed.
 * @param transaction the lower 32 bits of its id, as the log has it. It has to be within two thousand million of the snapshot.
 */
export function isOver(transaction: number, { xmin, xmax, underway }: Snapshot): boolean {
  // The difference of the lower 32 bits, with a sign.
  const id = xmax + ((transaction - xmax) | 0);
  return id < xmin || (id < xmax && !underway.has(id));
}

async function readSnapshot(ask: Ask): Promise<Snapshot> {
  const [row] = await ask<{ text: string }>('SELECT pg_current_snapshot()::text AS text');
  if (!row) throw new Error('the server has said nothing about its snapshot');
  return parseSnapshot(row.text);
}
