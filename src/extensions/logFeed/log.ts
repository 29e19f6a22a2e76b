/**
 * Reads announcements from the server's write-ahead log, where they are messages. Loaded only if the database announces so.
 *
 * They are read through a temporary replication slot, which is dropped with its connection, so that the server retains no log for a
 * gateway that is gone. A gateway that has lost its slot treats all data as changed.
 */

import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import type pg from 'pg';
import { LogicalReplicationService, type Pgoutput, PgoutputPlugin } from 'pg-logical-replication';
import type { Ask } from '../../database/feed/changeFeed.ts';
import { longestConnecting } from '../../database/session.ts';
import { pause } from '../../database/waiting.ts';

/** The prefix of the gateway's messages, and the publication that `pgoutput` needs, which has no table. */
const name = 'dovetail';

/** Names a new slot, and writes the statement that creates it. */
export function newSlot() {
  const slot = `dovetail_${randomBytes(8).toString('hex')}`;
  const create = `CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')`;
  return { slot, create };
}

/** Reads from a slot that it creates over the same connection. */
class TemporarySlotPlugin extends PgoutputPlugin {
  override async start(client: pg.Client, _: string, position: string): Promise<unknown> {
    const { slot, create } = newSlot();
    // The server stops waiting for a slot once this client is gone. Not every operating system supports it.
    await client.query(`SET client_connection_check_interval = '2s'`).catch(() => {});
    await client.query(create);
    return super.start(client, slot, position);
  }
}

/**
 * Starts to read messages. As soon as it has resolved, it misses no message about a change that snapshots do not show yet.
 *
 * A slot delivers only what commits after it was created. Changes that are in the log already, but that snapshots do not
 * show yet, would be missed: so this waits for all transactions that have begun to write.
 * @param ask runs a statement on the server of the messages.
 * @param lost aborted by the part that notices that messages are no longer read.
 */
export async function readMessages(
  direct: pg.ClientConfig,
  ask: Ask,
  hear: (payload: string) => void,
  lost: AbortController,
): Promise<void> {
  const socket = new Socket();
  const service = new LogicalReplicationService(
    {
      ...direct,
      stream: () => socket,
      connectionTimeoutMillis: longestConnecting,
      // Detects that the server is gone while it is silent for a good reason: a new slot waits for transactions that write.
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    },
    // Tells the server every five seconds which part of the log was read, so that the server can remove it.
    { acknowledge: { auto: false, timeoutSeconds: 5 } },
  );
  // Not `service.destroy()`, after which a connection that is being made neither succeeds nor fails.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  const hearVisible = createVisibility(ask, hear, lost);
  let transaction = '';
  service.on('data', (_, message: Pgoutput.Message) => {
    if (message.tag === 'begin') transaction = String(message.xid >>> 0);
    // Any role may send a message that belongs to no transaction.
    if (message.tag === 'message' && message.prefix === name && message.transactional)
      hearVisible(transaction, Buffer.from(message.content).toString());
  });
  service.on('heartbeat', (position, _, isAsked) => {
    if (isAsked) void service.acknowledge(position);
  });
  service.on('error', (error) => lost.abort(error));
  const begun = new Promise((settle) => service.once('start', settle));
  const plugin = new TemporarySlotPlugin({ protoVersion: 1, publicationNames: [name], messages: true });
  // Pending for as long as messages are read.
  const reading = service.subscribe(plugin, '');
  reading
    .then(
      () => lost.abort(),
      (error: unknown) => lost.abort(error),
    )
    .finally(() => service.destroy().catch(() => {}));
  await Promise.race([begun, reading]);
  await awaitWriters(ask, lost.signal);
}

/** Waits until all transactions that have begun to write by now have ended. */
export async function awaitWriters(ask: Ask, lost: AbortSignal): Promise<void> {
  // A transaction id of our own, which comes after theirs. The upper bound of a snapshot would not do: the last writer may be above it.
  const [mark] = await ask<{ own: string }>('SELECT pg_current_xact_id()::text AS own');
  const statement = 'SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 AS over';
  while (!(await ask<{ over: boolean }>(statement, [mark?.own]))[0]?.over) await pause(20, lost);
}

/**
 * Whether a transaction is over for a snapshot, as `pg_current_snapshot` writes it: it shows its changes, or it has failed. The log
 * has only the lower 32 bits of its id, so it has to be within two thousand million of the snapshot.
 */
export function isOver(transaction: string, snapshot: string): boolean {
  const [, xmax = '', running = ''] = snapshot.split(':');
  const half = (id: string) => BigInt.asUintN(32, BigInt(id));
  const isBegun = BigInt.asIntN(32, half(transaction) - half(xmax)) < 0n;
  return isBegun && !running.split(',').some((id) => half(id) === half(transaction));
}

/**
 * Makes a function that passes each announcement on as soon as its change is visible. A message may be read from the log before that: the
 * commit is in the log first, and may wait there for a synchronous standby. Equal announcements of a transaction are passed on only once,
 * and a heartbeat after all that was visible before it.
 */
function createVisibility(
  ask: Ask,
  hear: (payload: string) => void,
  lost: AbortController,
): (transaction: string, payload: string) => void {
  const waiting = new Map<string, Set<string>>();
  let isPassing = false;

  async function passOn(): Promise<void> {
    while (waiting.size > 0 && !lost.signal.aborted) {
      const [now] = await ask<{ seen: string }>('SELECT pg_current_snapshot()::text AS seen');
      for (const [transaction, payloads] of waiting) {
        if (!isOver(transaction, now?.seen ?? '')) continue;
        waiting.delete(transaction);
        payloads.forEach(hear);
      }
      // Collects more messages for the next snapshot.
      await pause(5, lost.signal);
    }
    isPassing = false;
  }

  return (transaction, payload) => {
    const payloads = waiting.get(transaction) ?? new Set();
    waiting.set(transaction, payloads.add(payload));
    if (isPassing) return;
    isPassing = true;
    // Deferred, so that one snapshot serves all messages that arrive together.
    setImmediate(() => passOn().catch((error: unknown) => lost.abort(error)));
  };
}
