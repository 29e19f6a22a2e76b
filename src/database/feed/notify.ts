/** Listening by LISTEN, in one way for both engines. */

import { Socket } from 'node:net';
import pg from 'pg';
import type { EmbeddedPostgres } from '../embedded/embedded.ts';
import { isPooled, shareSessions } from '../pooler.ts';
import type { ChangeFeed } from './changeFeed.ts';
import { heartbeat } from './heartbeats.ts';
import { keepListening } from './keepListening.ts';

const channel = 'dovetail';

/**
 * Listens to the embedded engine, in the process that runs it. Its one session does one thing at a time, so that a
 * heartbeat may wait for as long as somebody else's transaction is open; nothing can change meanwhile.
 */
export function listenToEngine({ connection, listeners }: EmbeddedPostgres): Promise<ChangeFeed> {
  return keepListening(async (hear, lost) => {
    const listener = (from: string, payload: string) => {
      if (from === channel) hear(payload);
    };
    listeners.add(listener);
    lost.signal.addEventListener('abort', () => listeners.delete(listener), { once: true });
    const client = await openConnection(connection, lost);
    await client.query(`LISTEN ${channel}`);
    return (payload) => client.query(`NOTIFY ${channel}, '${payload}'`);
  });
}

/**
 * Listens to a server, on a connection that does nothing else: whatever a pooler lets it execute could bring along
 * what arrived for somebody else. Heartbeats go over a connection of their own, made like those of the pool, where
 * they would have to wait in overload. It is made anew now and then: when the address has come to lead to another
 * server, connections to the one before go on hearing each other there, while the pool's leave it.
 * @param beats how many heartbeats go over one connection.
 */
export function listenToServer(connection: pg.ClientConfig, beats = 15): Promise<ChangeFeed> {
  const bounded = { ...connection, connectionTimeoutMillis: heartbeat, query_timeout: heartbeat };
  return keepListening(async (hear, lost) => {
    let announcing = new AbortController();
    lost.signal.addEventListener('abort', () => announcing.abort(), { once: true });
    let beatsLeft = beats;
    const [listener, firstAnnouncer] = await Promise.all([
      openConnection(bounded, lost),
      openConnection(bounded, announcing),
    ]);
    let announcer = firstAnnouncer;
    // A LISTEN would stay in a session that other clients use, to whom its announcements would go.
    if ((await isPooled(listener)) && (await shareSessions(listener, announcer)))
      throw new Error('the pooler does not give each connection a session of its own');
    listener.on('notification', ({ payload = '' }) => hear(payload));
    await listener.query(`LISTEN ${channel}`);
    return async (payload) => {
      if (beatsLeft-- === 0) {
        announcing.abort();
        announcing = new AbortController();
        announcer = await openConnection(bounded, announcing);
        beatsLeft = beats - 1;
      }
      return announcer.query(`NOTIFY ${channel}, '${payload}'`);
    };
  });
}

async function openConnection(connection: pg.ClientConfig, lost: AbortController): Promise<pg.Client> {
  const socket = new Socket();
  const client = new pg.Client({ ...connection, stream: () => socket });
  const lose = () => lost.abort();
  client.on('error', lose).once('end', lose);
  // Not `client.end()`, which waits for what a dead connection never says.
  lost.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await client.connect();
  return client;
}
