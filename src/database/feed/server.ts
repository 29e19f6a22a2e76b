/**
 * Listens to a server by the mode in which its database announces: NOTIFY, or messages in the log.
 *
 * The database function `announce` returns the mode with each heartbeat. A gateway that listens by the other mode does not
 * receive its own heartbeats and reconnects, so a database may be switched at any moment. The gateway always listens to
 * NOTIFY as well: transactions that began before the switch may announce by it.
 */

import type pg from 'pg';
import { isPooled, shareSessions } from '../pooler.ts';
import { createAnnouncer } from './announcer.ts';
import { type ChangeFeed, type FeedKind, listenStatement } from './changeFeed.ts';
import { openConnection } from './connection.ts';
import { type Announce, heartbeat, isHeartbeat } from './heartbeats.ts';
import { type FeedReport, keepListening } from './keepListening.ts';

/** The payload that is announced when a database is switched to another mode. */
const switched = 'switched';

const switchedError = () => new Error('changes are announced in another way now');

/**
 * Listens on a connection that does nothing else: behind a pooler, any other statement could bring along notifications that
 * were meant for another client.
 * @param direct connects to the server itself.
 * @param announcing connects as the pool does. Heartbeats are sent over it, so that they do not arrive if the two have come
 * to lead to different servers.
 * @param longestUse after how many milliseconds the connection for heartbeats is renewed.
 * @param report told why nothing arrives, and when something does again.
 */
export function listenToServer(
  direct: pg.ClientConfig,
  announcing = direct,
  { longestUse = 30_000, report }: { longestUse?: number; report?: FeedReport | undefined } = {},
): Promise<ChangeFeed> {
  return keepListening(
    async (hear, lost) => {
      const [listener, announcer] = await Promise.all([
        openConnection(bounded(direct), lost),
        createAnnouncer(bounded(announcing), longestUse, lost),
      ]);
      // The LISTEN would stay in a session that other clients use, and they would get the notifications.
      if ((await isPooled(listener)) && (await shareSessions(listener, announcer.client)))
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
      await listener.query(listenStatement);

      return {
        get kind() {
          return kind;
        },
        // Not every caller handles a failure.
        announce: orLose(lost, async (payload) => {
          const way = await announcer.announce(payload);
          const isFirst = !isChosen;
          isChosen = true;
          if (way === kind) return;
          // Not after the first heartbeat: messages sent before the switch would be missed, so it reconnects.
          if (!isFirst) throw switchedError();
          kind = way;
          const { hearMessages } = await import('./logicalFeed.ts');
          await hearMessages(direct, announcer, hear, lost);
          await announcer.announce(payload);
        }),
      };
    },
    { report },
  );
}

/** Wraps `announce` so that its failure closes the connections. */
const orLose =
  (lost: AbortController, announce: Announce): Announce =>
  (payload) =>
    announce(payload).catch((error: unknown) => {
      lost.abort(error);
      throw error;
    });

const bounded = (connection: pg.ClientConfig): pg.ClientConfig => ({
  ...connection,
  connectionTimeoutMillis: heartbeat,
  query_timeout: heartbeat,
});
