/**
 * Serves a PGlite engine to several connections, each of which seems to have a PostgreSQL session of its own.
 *
 * PGlite is a single PostgreSQL session. Two clients whose messages mix in it would bind their parameters to each
 * other's statements, so the clients take turns. What a client sends goes this way:
 *
 *     socket → clientMessages (complete messages, and none that would end the engine)
 *            → turn           (waits until the engine is this client's)
 *            → guest          (only for guests: the session becomes theirs for the turn)
 *            → engine         (runs them, unless it has failed)
 *            → replies        (notifications go to the gateway, the rest to the client)
 *            → socket
 *
 * When the replies show that the engine is idle, the turn ends: the session of a guest is reset, and the next turn begins.
 *
 * The gateway's own clients change no state that outlives a transaction, so their session is not saved and reset. All other
 * clients are guests. `@electric-sql/pglite-socket` is not used: it alternates between clients after single messages, and
 * mixes them up under load.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { errorText } from '../../errors.ts';
import { createMutex, type Mutex } from '../mutex.ts';
import { readParts, type Setting, startupSettings } from './clientMessages.ts';
import { createEngine, type Engine, type Run } from './engine.ts';
import { createEngineTurns, type EngineTurns } from './engineTurn.ts';
import { createGuestSession } from './guest.ts';
import { report } from './protocol.ts';
import { createReplyReader, type NotificationListener } from './replies.ts';

export interface SocketOptions {
  /** How long, in milliseconds, a client may send nothing during its turn while others wait. */
  silenceLimit?: number;
  /** The `application_name` of the gateway's own clients. It is a secret. */
  ownName?: string;
  /** Called before each use of the engine. Returns an error if the engine must not be used any more. */
  findObstacle?: () => Error | undefined;
}

/** The prefix of the `application_name` that each gateway gives to its own clients. */
export const ownNamePrefix = 'dovetail-gateway-';

export interface EngineServer extends Server {
  closeConnections(): void;
  /** Resolves when the engine has failed. It is not used any more then, and all connections are closed. */
  readonly failure: Promise<Error>;
  hasFailed(): boolean;
  /** Checks whether the engine may still be used, and makes it fail if not. */
  check(): void;
}

/**
 * Creates a server for the engine. Its clients share one session, so a notification would reach the client whose turn it is.
 * It is passed to `onNotification` instead, before that client receives the end of its statement.
 */
export function serveEngine(
  pglite: PGlite,
  onNotification: NotificationListener,
  { silenceLimit = 10_000, ownName, findObstacle = () => undefined }: SocketOptions = {},
): EngineServer {
  const sockets = new Set<Socket>();
  const engine = createEngine(pglite, findObstacle);
  const { failure, hasFailed, check } = engine;
  const service = { engine, queue: createMutex(), onNotification, silenceLimit, ownName };
  const server = createServer((socket) => {
    if (hasFailed()) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    serveClient(socket, service)
      .catch(() => {})
      .finally(() => socket.destroy());
  });
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  failure.then(() => {
    // Closing a server removes its socket file, which may belong to another process by now.
    if (!findObstacle()) server.close();
    closeConnections();
  });
  return Object.assign(server, { closeConnections, failure, hasFailed, check });
}

interface Service {
  readonly engine: Engine;
  readonly queue: Mutex;
  readonly onNotification: NotificationListener;
  readonly silenceLimit: number;
  readonly ownName: string | undefined;
}

/** Serves one client until it disconnects or an error ends its connection. */
async function serveClient(socket: Socket, service: Service): Promise<void> {
  const { engine, queue, onNotification } = service;
  const send = (data: Buffer) => {
    socket.write(data);
  };
  let turns: EngineTurns | undefined;
  let isGuest = false;
  const silence = dropWhenSilent(socket, service, () => turns?.isHeld() ?? false);

  try {
    const parts = readParts(socket);
    const { value: startup } = await parts.next();
    if (startup === undefined) return;
    const settings = startupSettings(startup);
    const client = clientOf(settings, service.ownName);
    if (client === 'lost') return;
    isGuest = client === 'guest';
    const guest = isGuest ? createGuestSession(engine, settings) : undefined;
    // A guest receives the end of its statement after its session was reset, behind the notice of what it lost.
    const replies = createReplyReader(send, onNotification, isGuest);
    const mine = createEngineTurns({ engine, queue, guest, onNotification, send, onEnd: replies.release });
    turns = mine;

    /** Runs messages of the client in its turn. */
    const serve = async (part: Buffer, run: Run) => {
      silence.refresh();
      const hasToWait = !mine.isHeld();
      await mine.acquire();
      // A client that disconnected while it waited counts its statement as failed, so it must not run later.
      if (hasToWait && socket.destroyed) throw new Error('the client left while it waited');
      await run(part, replies.read);
      // The engine runs in this thread and delays the timer, so the time that it took does not count as silence.
      silence.refresh();
      if (replies.isIdle()) await mine.release();
      if (socket.writableNeedDrain) await drained(socket);
    };
    // The start-up message has no type, so it does not go through the session of a guest.
    await serve(startup, engine.run);
    for await (const part of parts) await serve(part, guest?.run ?? engine.run);
  } catch (error) {
    if (error instanceof RangeError) send(report('FATAL', '08P01', errorText(error)));
    else if (isGuest && turns?.isHeld()) send(report('FATAL', '57P01', errorText(error)));
    throw error;
  } finally {
    clearTimeout(silence);
    await turns?.abort();
  }
}

/**
 * The kind of a client, by its start-up message: the gateway's own, or a guest. It is lost if it belongs to another gateway
 * whose folder was replaced, and which has connected to this gateway's socket by its path.
 */
function clientOf(settings: readonly Setting[], ownName: string | undefined): 'own' | 'guest' | 'lost' {
  const name = settings.find((each) => each.name === 'application_name')?.setting ?? '';
  if (name === ownName) return 'own';
  return name.startsWith(ownNamePrefix) ? 'lost' : 'guest';
}

/**
 * Disconnects a client that sends nothing during its turn while others wait.
 * @returns a timer. It has to be refreshed whenever the client sends something, and cleared at the end.
 */
function dropWhenSilent(socket: Socket, { queue, silenceLimit }: Service, isItsTurn: () => boolean) {
  const silence = setTimeout(() => {
    if (isItsTurn() && queue.waiting() > 0) {
      socket.write(silentTooLong);
      socket.destroy();
    } else silence.refresh();
  }, silenceLimit);
  return silence;
}

const silentTooLong = report(
  'FATAL',
  '25P03',
  'terminating connection: it kept silent in a transaction while others waited',
);

/** Waits until the client has read the buffered data, or has disconnected. */
function drained(socket: Socket): Promise<void> {
  return new Promise((settle) => {
    const done = () => {
      socket.off('drain', done).off('close', done);
      settle();
    };
    socket.on('drain', done).on('close', done);
  });
}
