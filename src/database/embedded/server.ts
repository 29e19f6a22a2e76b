/**
 * Serves the engine to the gateway and its commands, each of which seems to have a PostgreSQL session of its own.
 *
 * PGlite is a single session. Its clients take turns: a turn begins with the first message of a client, and ends when the
 * engine is idle outside of any transaction. Two clients whose messages mix would bind their parameters to each other's
 * statements. The gateway and its commands leave nothing in the session that outlives a transaction, so nothing has to be
 * reset between turns. That is not known of other clients, and they are rejected.
 *
 * `@electric-sql/pglite-socket` is not used: it takes turns after single messages, and so mixes them.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { createMutex, type Mutex } from '../mutex.ts';
import { createEngine, type Engine } from './engine.ts';
import type { NotificationListener } from './protocol.ts';
import { applicationNameIn, fatal, message, readMessages, readReplies } from './protocol.ts';

export interface ServerOptions {
  /** The names by which clients are known: the `application_name` with which they connect. */
  readonly names: readonly string[];
  /** Called with each notification. Only the gateway listens, but in a session that all clients share. */
  readonly onNotification: NotificationListener;
  /** Called before each use of the engine. Returns an error if the engine must not be used any more. */
  readonly findObstacle?: () => Error | undefined;
  /** How long, in milliseconds, a client may send nothing during its turn while others wait. */
  readonly silenceLimit?: number | undefined;
}

export interface EngineServer extends Server, Pick<Engine, 'failed' | 'check'> {
  /** Stops listening, and closes all connections. An engine that has failed is stopped already. */
  stop(): void;
}

export function serveEngine(
  pglite: PGlite,
  { findObstacle = () => undefined, silenceLimit = 10_000, ...options }: ServerOptions,
): EngineServer {
  const sockets = new Set<Socket>();
  const engine = createEngine(pglite, findObstacle);
  const { failed, check } = engine;
  const service = { ...options, silenceLimit, engine, queue: createMutex() };
  const server = createServer((socket) => {
    if (failed.aborted) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    serveClient(socket, service)
      .catch(() => {})
      .finally(() => socket.destroy());
  });
  const stop = () => {
    // Closing a server removes its socket file, which may belong to another process by now.
    if (findObstacle()) server.unref();
    else server.close();
    for (const socket of sockets) socket.destroy();
  };
  failed.addEventListener('abort', stop);
  return Object.assign(server, { stop, failed, check });
}

interface Service extends Pick<ServerOptions, 'names' | 'onNotification'> {
  readonly engine: Engine;
  readonly queue: Mutex;
  readonly silenceLimit: number;
}

/** Serves one client until it disconnects, or an error ends its connection. */
async function serveClient(socket: Socket, service: Service): Promise<void> {
  const { names, onNotification, engine, queue, silenceLimit } = service;
  let isKnown = false;
  let isIdle = true;
  let endTurn: (() => void) | undefined;
  dropWhenSilent(socket, silenceLimit, () => endTurn !== undefined && queue.waiting() > 0);
  try {
    for await (const messages of readMessages(socket)) {
      if (!isKnown && !names.includes(applicationNameIn(messages) ?? '')) {
        socket.write(notKnown);
        return;
      }
      isKnown = true;
      if (!endTurn) {
        endTurn = await queue.acquire();
        // A client that disconnected while it waited counts its statement as failed, so it must not run later.
        if (socket.destroyed) return;
      }
      const replies = await engine.run(messages);
      // Notifications are passed on before the client learns that its statement has been carried out.
      isIdle = readReplies(replies, isIdle, onNotification);
      socket.write(replies);
      if (!isIdle) continue;
      endTurn();
      endTurn = undefined;
    }
  } finally {
    // An engine that has failed cannot roll back. The client is gone, so nobody has to be told.
    if (endTurn) await engine.run(rollback).catch(() => {});
    endTurn?.();
  }
}

const notKnown = fatal(
  '28000',
  'the embedded database serves the gateway and its commands alone: to share a database with other clients, set DATABASE_URL to that of a PostgreSQL server',
);

/**
 * Rolls back the transaction of a client. The Sync is needed, since after an error the engine ignores everything before it,
 * the ROLLBACK included. But a Sync would commit an unfinished batch, so a portal that does not exist is executed first: the
 * error aborts the batch.
 */
const rollback = Buffer.concat([
  message('E', 'abandoned', Buffer.alloc(4)),
  message('S'),
  message('Q', 'ROLLBACK'),
]);

/** Disconnects a client that sends nothing for so many milliseconds, if it keeps others waiting. */
function dropWhenSilent(socket: Socket, limit: number, keepsOthersWaiting: () => boolean): void {
  // The engine runs in this thread, where no timer fires meanwhile, and then its reply counts as a sign of life.
  socket.setTimeout(limit).on('timeout', () => {
    if (keepsOthersWaiting()) {
      socket.write(silentTooLong);
      socket.destroy();
    } else socket.setTimeout(limit);
  });
}

const silentTooLong = fatal(
  '25P03',
  'terminating connection: it kept silent in a transaction while others waited',
);
