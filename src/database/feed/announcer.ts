/** The connection over which a gateway sends itself heartbeats, and asks what snapshots show. */

import pLimit from 'p-limit';
import type pg from 'pg';
import { pause } from '../waiting.ts';
import type { FeedKind } from './changeFeed.ts';
import { openConnection } from './connection.ts';
import { parseSnapshot, type Snapshot } from './snapshot.ts';

export interface Announcer {
  /** The first connection, before any renewal. */
  readonly client: pg.Client;
  /** Announces by the same mode as writes do, and returns the mode. */
  announce(payload: string): Promise<FeedKind>;
  /** Takes a new snapshot of the database. */
  readSnapshot(): Promise<Snapshot>;
  /** Waits until all transactions that have begun to write by now have ended. */
  awaitWriters(): Promise<void>;
  ping(): Promise<unknown>;
}

/**
 * Opens a connection of its own, configured like those of the pool, in which heartbeats would have to wait under overload.
 * @param longestUse after how many milliseconds the connection is renewed.
 */
export async function createAnnouncer(
  connection: pg.ClientConfig,
  longestUse: number,
  lost: AbortController,
): Promise<Announcer> {
  const { client, ask, renew } = await openRenewable(connection, lost);
  let began = performance.now();
  let lastWay: string | undefined;
  return {
    client,

    async announce(payload) {
      if (performance.now() - began > longestUse) {
        began = performance.now();
        await renew();
      }
      // Does not wait for a synchronous standby: one that is away must not make heartbeats fail. A message can be read from
      // the log once it is on the local disk ('local'); a notification need not wait even for that ('off').
      const rows = await ask<{ way: string }>(
        `SELECT set_config('synchronous_commit', $2, true), announce($1) AS way`,
        [payload, lastWay === 'notify' ? 'off' : 'local'],
      );
      lastWay = rows[0]?.way;
      return lastWay === 'notify' ? 'notify' : 'logical';
    },

    async readSnapshot() {
      const [row] = await ask<{ snapshot: string }>('SELECT pg_current_snapshot()::text AS snapshot');
      if (!row) throw new Error('the server has said nothing about its snapshot');
      return parseSnapshot(row.snapshot);
    },

    async awaitWriters() {
      // A transaction id of our own, which comes after theirs. The upper bound of a snapshot would not do: the last writer may be above it.
      const [mark] = await ask<{ own: string }>('SELECT pg_current_xact_id()::text AS own');
      const areOver = async () => {
        const [row] = await ask<{ over: boolean }>(
          'SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 AS over',
          [mark?.own],
        );
        return row?.over ?? false;
      };
      while (!(await areOver())) await pause(20, lost.signal);
    },

    ping: () => ask('SELECT 1'),
  };
}

/**
 * A connection that can be renewed. When the address comes to lead to another server, old connections go on working with
 * the old server, while those of the pool move to the new one.
 */
async function openRenewable(connection: pg.ClientConfig, lost: AbortController) {
  let current = await openOne(connection, lost);
  const inTurn = pLimit(1);
  return {
    client: current.client,

    async ask<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
      const { rows } = await inTurn(() => current.client.query<Row>(text, values));
      return rows;
    },

    async renew(): Promise<void> {
      const next = await openOne(connection, lost);
      // Not before the running query has ended.
      await inTurn(() => {
        current.own.abort();
        current = next;
      });
    },
  };
}

/** Opens a connection that can be closed on its own. */
async function openOne(connection: pg.ClientConfig, lost: AbortController) {
  const own = new AbortController();
  const lose = () => own.abort();
  lost.signal.addEventListener('abort', lose, { once: true });
  own.signal.addEventListener('abort', () => lost.signal.removeEventListener('abort', lose), { once: true });
  return { client: await openConnection(connection, own), own };
}
