/** The connection over which a gateway announces something to itself, and asks what snapshots see. */

import pLimit from 'p-limit';
import type pg from 'pg';
import { pause } from '../waiting.ts';
import type { FeedKind } from './changeFeed.ts';
import { openConnection } from './connection.ts';

export interface Announcer {
  /** The connection as it is at first. */
  readonly client: pg.Client;
  /** Announces in the way that writes do, and says which that is. */
  announce(payload: string): Promise<FeedKind>;
  /** Those of the transactions that every snapshot from now on sees, or sees to have failed. */
  findVisible(transactions: readonly string[]): Promise<readonly string[]>;
  /** Waits until all transactions are over that have begun to write by now. */
  awaitWriters(): Promise<void>;
  ping(): Promise<unknown>;
}

/**
 * A connection of its own, made like those of the pool, where heartbeats would have to wait in overload.
 * @param longestUse how long, in milliseconds, it is used before it is made anew.
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
      // A synchronous standby that is away keeps writes from being seen, and not from being announced. What is in the log
      // can be read from there once it is on the disk, for which a notification does not wait.
      const rows = await ask<{ way: string }>(
        `SELECT set_config('synchronous_commit', $2, true), announce($1) AS way`,
        [payload, lastWay === 'notify' ? 'off' : 'local'],
      );
      lastWay = rows[0]?.way;
      return lastWay === 'notify' ? 'notify' : 'logical';
    },

    async findVisible(transactions) {
      const rows = await ask<{ id: string }>(
        `SELECT id::text FROM pg_current_snapshot() AS snapshot, unnest($1::xid8[]) AS id
         WHERE pg_visible_in_snapshot(id, snapshot)`,
        [transactions],
      );
      return rows.map(({ id }) => id);
    },

    async awaitWriters() {
      // A number of our own, which comes after theirs. The upper bound of a snapshot will not do: who is last may be above it.
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
 * A connection that can be made anew: when the address has come to lead to another server, connections to the one before
 * go on hearing each other there, while the pool's leave it.
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
      // Not before what was asked is answered.
      await inTurn(() => {
        current.own.abort();
        current = next;
      });
    },
  };
}

/** Opens a connection that can be given up by itself. */
async function openOne(connection: pg.ClientConfig, lost: AbortController) {
  const own = new AbortController();
  const lose = () => own.abort();
  lost.signal.addEventListener('abort', lose, { once: true });
  own.signal.addEventListener('abort', () => lost.signal.removeEventListener('abort', lose), { once: true });
  return { client: await openConnection(connection, own), own };
}
