/**
 * Reading messages from the log of a server, by a slot that is gone when its connection is: what no gateway reads is kept
 * for none. Who lost a slot knows nothing of what came meanwhile, and does not try to.
 */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { PgoutputPlugin } from 'pg-logical-replication';
import { openConnection } from './connection.ts';
import { heartbeat } from './heartbeats.ts';

/** Of which messages are the gateway's. */
const prefix = 'dovetail';

/** What `pgoutput` asks for: a publication, of no table, since the messages say everything. */
export const publication = 'dovetail';

/** How long, in milliseconds, it may take to make a slot, which waits for all transactions that write. */
const longestCreation = 5 * 60_000;

/** How often, in milliseconds, the server is told what was read, so that it need not keep it. */
const reportInterval = 5_000;

/** To be told of each message: by which transaction it was sent, and what was announced. */
export type HearMessage = (transaction: string, payload: string) => void;

/**
 * Begins to read. When this is done, the messages are read of every transaction that commits from then on.
 * @param lost aborted when they are not any more, by whoever notices.
 */
export type ReadMessages = (
  direct: pg.ClientConfig,
  hear: HearMessage,
  lost: AbortController,
) => Promise<void>;

export const readMessages: ReadMessages = async (direct, hear, lost) => {
  const client = await openReplication(direct, lost);
  const slot = `dovetail_${randomBytes(8).toString('hex')}`;
  const timer = setTimeout(() => lost.abort(), longestCreation);
  await client
    .query(`CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')`)
    .finally(() => clearTimeout(timer));
  const plugin = new PgoutputPlugin({ protoVersion: 1, publicationNames: [publication], messages: true });
  const report = reportPosition(client, lost.signal);
  const hearData = createHearData(plugin, hear);
  client.connection.on('copyData', ({ chunk }: { chunk: Buffer }) => {
    const isData = chunk[0] === 0x77;
    if (isData) hearData(chunk.subarray(25));
    // The place in the log: of the data, or of the end of what was sent.
    const isAsked = !isData && chunk[17] === 1;
    report(chunk.readBigUInt64BE(1), isAsked);
  });
  const begun = new Promise((settle) => client.connection.once('replicationStart', settle));
  // Never done while messages are read.
  const reading = plugin.start(client, slot, '0/0').finally(() => lost.abort());
  await Promise.race([begun, reading]);
};

/** A connection that speaks of the log, to the database that has the messages. */
export async function openReplication(direct: pg.ClientConfig, lost: AbortController): Promise<pg.Client> {
  // The types of `pg` do not know the parameter, which it hands on.
  const config: pg.ClientConfig & { replication: 'database' } = {
    ...direct,
    replication: 'database',
    connectionTimeoutMillis: heartbeat,
    keepAlive: true,
  };
  const client = await openConnection(config, lost);
  // So that a slot is not waited for any longer when nobody wants it. Not every system can.
  await client.query(`SET client_connection_check_interval = '2s'`).catch(() => {});
  return client;
}

/**
 * Hears what triggers announced: the number of their transaction, and what it is. Whoever may connect may send messages, so
 * one with another number than its transaction has, which nobody might ever see, is none of theirs.
 */
function createHearData(plugin: PgoutputPlugin, hear: HearMessage): (data: Buffer) => void {
  /** The lower half of the number of the transaction that is being read. */
  let current: bigint | undefined;
  return (data) => {
    const message = plugin.parse(data);
    if (message.tag === 'begin') current = BigInt(message.xid >>> 0);
    if (message.tag === 'commit') current = undefined;
    if (message.tag !== 'message' || message.prefix !== prefix) return;
    const [, transaction = '', payload = ''] = /^(\d{1,19}) (.*)$/s.exec(textOf(message.content)) ?? [];
    if (transaction !== '' && BigInt.asUintN(32, BigInt(transaction)) === current) hear(transaction, payload);
  };
}

const textOf = (content: Uint8Array): string => Buffer.from(content).toString();

/** Tells the server what was read: now and then, and when it asks. */
function reportPosition(client: pg.Client, lost: AbortSignal) {
  let position = 0n;
  function tell(): void {
    const status = Buffer.alloc(34);
    status.write('r');
    // Written, flushed and applied.
    for (const place of [1, 9, 17]) status.writeBigUInt64BE(position, place);
    const sinceTheYear2000 = BigInt(Date.now() - Date.UTC(2000, 0)) * 1_000n;
    status.writeBigInt64BE(sinceTheYear2000, 25);
    // The types of `pg` do not have it.
    (client.connection as unknown as { sendCopyFromChunk(chunk: Buffer): void }).sendCopyFromChunk(status);
  }
  const timer = setInterval(tell, reportInterval);
  lost.addEventListener('abort', () => clearInterval(timer), { once: true });
  return (read: bigint, isAsked: boolean): void => {
    if (read > position) position = read;
    if (isAsked) tell();
  };
}
