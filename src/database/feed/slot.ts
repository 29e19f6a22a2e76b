/**
 * Reads messages from the server's log through a temporary replication slot, which is dropped with its connection, so that
 * the server retains no log for a gateway that is gone. A gateway that has lost its slot takes everything as changed.
 */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { PgoutputPlugin } from 'pg-logical-replication';
import { heartbeat } from './keepListening.ts';
import { openConnection } from './server.ts';

/** The prefix of the gateway's messages. */
const prefix = 'dovetail';

/** The publication that `pgoutput` needs. It has no table, since the messages say everything. */
export const publication = 'dovetail';

/** How long, in milliseconds, creating a slot may take. It waits for all transactions that write. */
const longestCreation = 5 * 60_000;

/** How long, in milliseconds, each of the other steps before messages are read may take. */
const longestStep = 5_000;

/** How often, in milliseconds, the server is told which part of the log was read, so that it can remove it. */
const reportInterval = 5_000;

/** Called with each message: the lower 32 bits of the id of the transaction that sent it, and what it announces. */
type HearMessage = (transaction: number, payload: string) => void;

/**
 * Begins to read. Once it has resolved, the messages of every transaction that commits from then on are read.
 * @param lost aborted by whichever part finds that they are no longer read.
 */
export async function readMessages(
  direct: pg.ClientConfig,
  hear: HearMessage,
  lost: AbortController,
): Promise<void> {
  const client = await openReplication(direct, lost);
  const slot = `dovetail_${randomBytes(8).toString('hex')}`;
  const create = `CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')`;
  await loseAfter(
    longestCreation,
    lost,
    client.query(create),
    'a new slot waits too long for transactions that write',
  );
  const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [publication], messages: true });
  const report = reportPosition(client, lost.signal);
  const hearData = createHearData(plugin, hear);
  client.connection.on('copyData', ({ chunk }: { chunk: Buffer }) => {
    const isData = chunk[0] === 0x77;
    if (isData) hearData(chunk.subarray(25));
    // The position in the log: of the data, or of the end of what was sent.
    const isAsked = !isData && chunk[17] === 1;
    report(chunk.readBigUInt64BE(1), isAsked);
  });
  const begun = new Promise((settle) => client.connection.once('replicationStart', settle));
  // Pending for as long as messages are read.
  const reading = plugin.start(client, slot, '0/0');
  reading.then(
    () => lost.abort(),
    (error: unknown) => lost.abort(error),
  );
  await loseAfter(longestStep, lost, Promise.race([begun, reading]));
}

/**
 * Gives the connection up if a step takes longer than so many milliseconds. The query timeout of `pg` is no alternative, since
 * it would also end the query that reads, which goes on for as long as the connection.
 */
function loseAfter<Value>(
  longest: number,
  lost: AbortController,
  step: Promise<Value>,
  why = 'the server does not respond',
): Promise<Value> {
  const timer = setTimeout(() => lost.abort(new Error(why)), longest);
  return step.finally(() => clearTimeout(timer));
}

/** Opens a replication connection to the database that has the messages. */
export async function openReplication(direct: pg.ClientConfig, lost: AbortController): Promise<pg.Client> {
  // The types of `pg` do not have the parameter, which it passes on.
  const config: pg.ClientConfig & { replication: 'database' } = {
    ...direct,
    replication: 'database',
    connectionTimeoutMillis: heartbeat,
    keepAlive: true,
    // Detects that the server is gone while it is silent for a good reason: a new slot waits for transactions that write.
    keepAliveInitialDelayMillis: 10_000,
  };
  async function open(): Promise<pg.Client> {
    const client = await openConnection(config, lost);
    // The server stops waiting for a slot once this client is gone. Not every operating system supports it.
    await client.query(`SET client_connection_check_interval = '2s'`).catch(() => {});
    return client;
  }
  return loseAfter(longestStep, lost, open());
}

/** The first byte of what is sent at the end of a transaction. */
const commit = 'C'.charCodeAt(0);

/**
 * Reads what triggers announced. Statements that change many rows may announce the same thing as often, which is passed on
 * once for each transaction. Messages that belong to no transaction, which any role may send, are ignored.
 */
function createHearData(plugin: PgoutputPlugin, hear: HearMessage): (data: Buffer) => void {
  let transaction: number | undefined;
  const payloads = new Set<string>();
  return (data) => {
    if (data[0] === commit) {
      transaction = undefined;
      payloads.clear();
      return;
    }
    const message = plugin.parse(data);
    if (message.tag === 'begin') transaction = message.xid >>> 0;
    if (message.tag !== 'message' || message.prefix !== prefix || transaction === undefined) return;
    const payload = textOf(message.content);
    if (payloads.has(payload)) return;
    payloads.add(payload);
    hear(transaction, payload);
  };
}

const textOf = (content: Uint8Array): string => Buffer.from(content).toString();

/** Tells the server which part of the log was read: at intervals, and when it asks. */
function reportPosition(client: pg.Client, lost: AbortSignal) {
  let position = 0n;
  function tell(): void {
    const status = Buffer.alloc(34);
    status.write('r');
    // The positions written, flushed and applied.
    for (const place of [1, 9, 17]) status.writeBigUInt64BE(position, place);
    const sinceTheYear2000 = BigInt(Date.now() - Date.UTC(2000, 0)) * 1_000n;
    status.writeBigInt64BE(sinceTheYear2000, 25);
    // The types of `pg` do not have the method.
    (client.connection as unknown as { sendCopyFromChunk(chunk: Buffer): void }).sendCopyFromChunk(status);
  }
  const timer = setInterval(tell, reportInterval);
  lost.addEventListener('abort', () => clearInterval(timer), { once: true });
  return (read: bigint, isAsked: boolean): void => {
    if (read > position) position = read;
    if (isAsked) tell();
  };
}
