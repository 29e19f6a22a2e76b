/**
 * Listens to a server, or to the embedded engine. A database may announce by messages in its log: an extension reads these.
 *
 * The database function `announce` returns the mode with each heartbeat. When the mode changes, the gateway reconnects, so a
 * database may be switched at any moment. The gateway always listens to NOTIFY as well: transactions that began before the
 * switch may announce by it.
 */

import type pg from 'pg';
import type { EmbeddedPostgres } from '../embedded/embedded.ts';
import { type Identity, identityColumns, type ServerWatch } from '../identity.ts';
import { checkListener, createSession, longestConnecting, Pool, setUpSession } from '../session.ts';
import {
  type Ask,
  type ChangeFeed,
  type FeedMode,
  type FeedReport,
  heartbeatInterval,
  heartbeatPrefix,
  keepListening,
} from './changeFeed.ts';

/** The channel of announcements by NOTIFY. */
const channel = 'dovetail';

/** The payload that is announced when a database is switched to another mode. */
const switched = 'switched';

const switchedError = () => new Error('changes are announced by another mode now');

/**
 * Listens to the embedded engine, in the process that runs it. The engine has one session, so a heartbeat may wait for as
 * long as another client's transaction is open; nothing else can change in the meantime.
 */
export function listenToEngine(
  { connection, listeners }: EmbeddedPostgres,
  report?: FeedReport,
): Promise<ChangeFeed> {
  return keepListening(
    async (hear, lost) => {
      const listener = (from: string, payload: string) => {
        if (from === channel) hear(payload);
      };
      listeners.add(listener);
      lost.signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
      const client = await openConnection(connection, lost, 0);
      await client.query(`LISTEN ${channel}`);
      // The engine has no logical decoding: everything is announced by NOTIFY.
      return { mode: 'notify', announce: (payload) => client.query(`NOTIFY ${channel}, '${payload}'`) };
    },
    report,
    // Announcements arrive with the reply to the commit, and so before anything that is read afterwards in the one session.
    true,
  );
}

interface ListenOptions {
  readonly longestUse?: number;
  readonly readLog?: ReadLog | undefined;
  readonly watch?: ServerWatch;
  readonly report?: FeedReport | undefined;
}

/**
 * Listens on a connection that does nothing else: behind a pooler, any other statement could fetch notifications of another
 * client.
 * @param direct connects to the server itself.
 * @param announcing connects as the pool does. Heartbeats are sent over it: if the two now lead to different servers, they do not
 * arrive.
 * @param longestUse how many milliseconds one connection is used for heartbeats.
 * @param readLog reads messages in the log, if the database announces by them.
 * @param watch notes which server heartbeats go to. When connections lead to another server, the gateway reconnects.
 * @param report as in `keepListening`.
 */
export function listenToServer(
  direct: pg.ClientConfig,
  announcing = direct,
  { longestUse = 30_000, readLog, watch, report }: ListenOptions = {},
): Promise<ChangeFeed> {
  return keepListening(async (hear, lost) => {
    watch?.subscribe(() => lost.abort(new Error('the address leads to another server now')), lost.signal);
    const announcer = openAnnouncer(announcing, longestUse, lost);
    const listener = await openConnection(direct, lost);
    const other = await announcer.connect();
    // The pool makes clients of this class.
    await checkListener(listener, other as pg.PoolClient & pg.Client).finally(() => other.release());
    const ask: Ask = async (text, values) => (await announcer.query(text, values)).rows;
    let mode: FeedMode | undefined;

    /** Announces something by the same mode as writes do, and returns the mode. */
    async function announce(payload: string): Promise<FeedMode> {
      // Does not wait until other servers have it: one that is away must not make heartbeats fail. A message can be read from
      // the log once it is on the local disk ('local'); a notification need not wait even for that ('off').
      const [row] = await ask<Identity & { mode: string }>(
        `SELECT set_config('synchronous_commit', $2, true), announce($1) AS mode, ${identityColumns}`,
        [payload, mode === 'logical' ? 'local' : 'off'],
      );
      if (row) watch?.note(row);
      const now = row?.mode === 'notify' ? 'notify' : 'logical';
      if (now !== (mode ?? now)) lost.abort(switchedError());
      return now;
    }

    listener.on('notification', ({ payload = '' }) => {
      if (payload === switched) lost.abort(switchedError());
      // Where messages are read, only a heartbeat among them proves that they arrive.
      else if (mode !== 'logical' || !payload.startsWith(heartbeatPrefix)) hear(payload);
    });
    await listener.query(`LISTEN ${channel}`);
    mode = await announce(heartbeatPrefix);
    if (mode === 'logical') {
      if (!readLog)
        throw new Error('changes are announced in the log of the database, which nothing here reads');
      await readLog(direct, ask, hear, lost);
    }
    return { mode, announce };
  }, report);
}

/**
 * Reads announcements in the log of a server. As soon as it has resolved, it misses none about a change that snapshots do not show yet.
 * @param ask runs a statement on the server.
 * @param lost aborted by the part that notices that the log is no longer read.
 */
export type ReadLog = (
  direct: pg.ClientConfig,
  ask: Ask,
  hear: (payload: string) => void,
  lost: AbortController,
) => Promise<void>;

/**
 * A pool of one connection, which is replaced now and then. If the address is moved to another server, an old connection would still
 * use the old server, while those of the gateway's pool move to the new one.
 */
function openAnnouncer(server: pg.ClientConfig, longestUse: number, lost: AbortController): pg.Pool {
  const pool = new Pool({
    ...server,
    max: 1,
    maxLifetimeSeconds: longestUse / 1_000,
    connectionTimeoutMillis: longestConnecting,
    query_timeout: heartbeatInterval,
    allowExitOnIdle: true,
    onConnect: (client) => setUpSession(client as pg.Client, server),
  });
  pool.on('error', (error) => lost.abort(error));
  lost.signal.addEventListener('abort', () => void pool.end(), { once: true });
  return pool;
}

/**
 * Opens a connection of a feed.
 * @param lost aborted when the connection is; the connection is closed when it is aborted.
 * @param longest how long, in milliseconds, a statement may take; 0 for any time.
 */
async function openConnection(
  config: pg.ClientConfig,
  lost: AbortController,
  longest = heartbeatInterval,
): Promise<pg.Client> {
  const { client, connect, cut } = createSession(config, longest);
  client.on('error', (error) => lost.abort(error)).once('end', () => lost.abort());
  // Not `client.end()`, which would wait for a response of a dead connection.
  lost.signal.addEventListener('abort', cut, { once: true });
  await connect();
  return client;
}
