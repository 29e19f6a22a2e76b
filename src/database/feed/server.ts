/**
 * Listening to a server, in whichever way its database announces: by NOTIFY, or by messages in its log as well.
 *
 * Which way that is, `announce` says in the database, with each heartbeat. A gateway that listens in the other one hears
 * nothing of its own and begins anew, so that a database may be switched at any moment. It always listens to NOTIFY too:
 * whoever began to write before the switch may announce in that way.
 */

import type pg from 'pg';
import { isPooled, shareSessions } from '../pooler.ts';
import { createAnnouncer } from './announcer.ts';
import { type ChangeFeed, type FeedKind, listenStatement } from './changeFeed.ts';
import { openConnection } from './connection.ts';
import { type Announce, heartbeat, isHeartbeat } from './heartbeats.ts';
import { keepListening } from './keepListening.ts';

/** What is announced when a database is switched from one way to another. */
const switched = 'switched';

/**
 * Listens, on a connection that does nothing else: whatever a pooler lets it execute could bring along what arrived for
 * somebody else.
 * @param direct reaches the server itself.
 * @param announcing reaches it as the pool does. Heartbeats go that way: where the two have come to lead to different
 * servers, they must not arrive.
 * @param longestUse how long, in milliseconds, heartbeats go over one connection.
 */
export function listenToServer(
  direct: pg.ClientConfig,
  announcing = direct,
  longestUse = 30_000,
): Promise<ChangeFeed> {
  return keepListening(async (hear, lost) => {
    const [listener, announcer] = await Promise.all([
      openConnection(bounded(direct), lost),
      createAnnouncer(bounded(announcing), longestUse, lost),
    ]);
    // A LISTEN would stay in a session that other clients use, to whom its announcements would go.
    if ((await isPooled(listener)) && (await shareSessions(listener, announcer.client)))
      throw new Error('the pooler does not give each connection a session of its own');
    let kind: FeedKind = 'notify';
    let isChosen = false;
    listener.on('notification', ({ payload = '' }) => {
      // Who reads messages as well misses nothing by a switch, and heartbeats are to prove that messages arrive.
      const isForOthers = kind === 'logical' && (payload === switched || isHeartbeat(payload));
      if (isForOthers) return;
      if (payload === switched) lost.abort();
      else hear(payload);
    });
    await listener.query(listenStatement);

    return {
      get kind() {
        return kind;
      },
      // Not all who announce see to it what becomes of a failure.
      announce: orLose(lost, async (payload) => {
        const way = await announcer.announce(payload);
        const isFirst = !isChosen;
        isChosen = true;
        if (way === kind) return;
        // Once it is listened, to begin with messages would miss what comes before them.
        if (!isFirst) throw new Error('changes are announced in another way now');
        kind = way;
        const { hearMessages } = await import('./logicalFeed.ts');
        await hearMessages(direct, announcer, hear, lost);
        await announcer.announce(payload);
      }),
    };
  });
}

/** Has the connections given up when it fails. */
const orLose =
  (lost: AbortController, announce: Announce): Announce =>
  (payload) =>
    announce(payload).catch((error: unknown) => {
      lost.abort();
      throw error;
    });

const bounded = (connection: pg.ClientConfig): pg.ClientConfig => ({
  ...connection,
  connectionTimeoutMillis: heartbeat,
  query_timeout: heartbeat,
});
