/**
 * Listens to a server by the mode in which its database announces: NOTIFY, or messages in the log.
 *
 * The database function `announce` returns the mode with each heartbeat. A gateway that listens by the other mode does not
 * receive its own heartbeats and reconnects, so a database may be switched at any moment. The gateway always listens to
 * NOTIFY as well: transactions that began before the switch may announce by it.
 */

import { Socket } from 'node:net';
import pLimit from 'p-limit';
import pg from 'pg';
import type { ServerConfig } from '../connection/client.ts';
import { isPooled, makeSessionSettings, shareSessions } from '../pooler.ts';
import { createSession } from '../session.ts';
import { type ChangeFeed, channel, type FeedKind } from './changeFeed.ts';
import { type FeedReport, heartbeat, isHeartbeat, keepListening } from './keepListening.ts';

/** The payload that is announced when a database is switched to another mode. */
const switched = 'switched';

const switchedError = () => new Error('changes are announced in another way now');

/**
 * Listens on a connection that does nothing else: behind a pooler, any other statement could bring along notifications that
 * were meant for another client.
 * @param direct connects to the server itself.
 * @param announcing connects as the pool does. Heartbeats are sent over it, so that they do not arrive if the two have come
 * to lead to different servers.
 * @param longestUse after how many milliseconds a heartbeat is sent over a new connection.
 * @param report told why nothing arrives, and when something does again.
 */
export function listenToServer(
  direct: ServerConfig,
  announcing = direct,
  { longestUse = 30_000, report }: { longestUse?: number; report?: FeedReport | undefined } = {},
): Promise<ChangeFeed> {
  return keepListening(
    async (hear, lost) => {
      const [listener, announcer] = await Promise.all([
        openConnection(bounded(direct), lost),
        openConnection(bounded(announcing), lost),
      ]);
      // The LISTEN would stay in a session that other clients use, and they would get the notifications.
      if ((await isPooled(listener)) && (await shareSessions(listener, announcer)))
        throw new Error('the pooler does not give each connection a session of its own');
      let kind: FeedKind = 'notify';
      let isChosen = false;
      listener.on('notification', ({ payload = '' }) => {
        // A gateway that reads messages misses nothing by a switch, and its heartbeats must prove that messages arrive.
        const isForOthers = kind === 'logical' && (payload === switched || isHeartbeat(payload));
        if (isForOthers) return;
        if (payload === switched) lost.abort(switchedError());
        else hear(payload);
      });
      await listener.query(`LISTEN ${channel}`);
      const ask = createAsk(announcer);
      const announce = createAnnounce(ask, bounded(announcing), longestUse);

      async function announceOr(payload: string): Promise<void> {
        const way = await announce(payload);
        const isFirst = !isChosen;
        isChosen = true;
        if (way === kind) return;
        // Not after the first heartbeat: messages sent before the switch would be missed, so it reconnects.
        if (!isFirst) throw switchedError();
        kind = way;
        const { hearMessages } = await import('./logical.ts');
        await hearMessages(direct, ask, hear, lost);
        await announce(payload);
      }

      return {
        get kind() {
          return kind;
        },
        announce: (payload) =>
          announceOr(payload).catch((error: unknown) => {
            // Not every caller handles a failure.
            lost.abort(error);
            throw error;
          }),
      };
    },
    { report },
  );
}

/**
 * Makes a function that announces something by the same mode as writes do, and returns the mode. Now and then it does so over a
 * new connection: when the address comes to lead to another server, old connections go on working with the old server, while
 * those of the pool move to the new one.
 */
function createAnnounce(ask: Ask, announcing: ServerConfig, longestUse: number) {
  let began = performance.now();
  let lastWay: string | undefined;

  async function announceOver(over: Ask, payload: string): Promise<FeedKind> {
    // Does not wait for a synchronous standby: one that is away must not make heartbeats fail. A message can be read from
    // the log once it is on the local disk ('local'); a notification need not wait even for that ('off').
    const [row] = await over<{ way: string }>(
      `SELECT set_config('synchronous_commit', $2, true), announce($1) AS way`,
      [payload, lastWay === 'notify' ? 'off' : 'local'],
    );
    lastWay = row?.way;
    return lastWay === 'notify' ? 'notify' : 'logical';
  }

  return async (payload: string): Promise<FeedKind> => {
    if (performance.now() - began < longestUse) return announceOver(ask, payload);
    began = performance.now();
    const { client, connect, close } = createSession(announcing, heartbeat);
    try {
      await connect();
      return await announceOver(createAsk(client), payload);
    } finally {
      void close();
    }
  };
}

export type Ask = <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;

/** Makes a function that runs statements on a connection one after the other, since `pg` takes one at a time. */
export function createAsk(client: pg.Client): Ask {
  const inTurn = pLimit(1);
  return async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) => {
    const { rows } = await inTurn(() => client.query<Row>(text, values));
    return rows;
  };
}

const bounded = (connection: ServerConfig): ServerConfig => ({
  ...connection,
  connectionTimeoutMillis: heartbeat,
  query_timeout: heartbeat,
});

/**
 * Opens a connection of a feed.
 * @param lost aborted when the connection is; the connection is given up when it is aborted.
 */
export async function openConnection(config: ServerConfig, lost: AbortController): Promise<pg.Client> {
  const socket = new Socket();
  const client = new pg.Client({ ...config, stream: () => socket });
  client.on('error', (error) => lost.abort(error)).once('end', () => lost.abort());
  // Not `client.end()`, which waits for what a dead connection never says.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await client.connect();
  await makeSessionSettings(client, config);
  return client;
}
