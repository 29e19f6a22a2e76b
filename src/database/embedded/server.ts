/**
 * Offers a PGlite to several connections, each of which believes it has a PostgreSQL of its own.
 *
 * PGlite is a single PostgreSQL session. Two clients whose messages mix in it would bind their parameters to each
 * other's statements, so the clients take turns. What a client sends goes this way:
 *
 *     socket → clientMessages (whole messages, and none that would end the engine)
 *            → turn           (waits until the engine is this client's)
 *            → guest          (only for guests: the session becomes theirs for the turn)
 *            → engine         (runs them, unless it has failed)
 *            → replies        (notifications go to the gateway, the rest to the client)
 *            → socket
 *
 * When the replies say that the engine is idle, the turn ends: a guest's session is put back, the next client begins.
 *
 * The gateway's own clients set nothing that outlives a transaction, so that their turns cost nothing more. All others
 * are guests. `@electric-sql/pglite-socket` is not used: it hands out single messages, and mixes them up under load.
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
  /** How long, in milliseconds, a client may sit silent in its turn while others wait. */
  silenceLimit?: number;
  /** The `application_name` of the gateway's own clients. It is for nobody else to know. */
  ownName?: string;
  /** Asked before the engine is touched. Gives the reason why it must not be any more. */
  findObstacle?: () => Error | undefined;
}

/** What the names begin with that gateways give to their own clients. */
export const ownNamePrefix = 'dovetail-gateway-';

export interface EngineServer extends Server {
  closeConnections(): void;
  /** Settles when the engine has failed. From then on it is not touched any more, and nobody is connected. */
  readonly failure: Promise<Error>;
  hasFailed(): boolean;
  /** Looks whether the engine may be touched still, and has it fail if not. */
  check(): void;
}

/**
 * A server for the engine; its connections are its own to close. Its clients share one session, so a notification
 * would reach whoever's turn it is. It goes to `onNotification` instead, before the client whose turn it is hears
 * that its statement is done.
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
    // To close a server is to remove its socket, which may be that of another process by now.
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

/** Serves one client, from its first byte until it leaves or cannot go on. */
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
    // A guest hears that its statement is done when its session is put back, after the notice of what it lost.
    const replies = createReplyReader(send, onNotification, isGuest);
    const mine = createEngineTurns({ engine, queue, guest, onNotification, send, onEnd: replies.release });
    turns = mine;

    /** Runs a part of what the client sends, in its turn. */
    const serve = async (part: Buffer, run: Run) => {
      silence.refresh();
      const hasToWait = !mine.isHeld();
      await mine.acquire();
      // Whoever gave up meanwhile was told that it failed, and is not to have it done later all the same.
      if (hasToWait && socket.destroyed) throw new Error('the client left while it waited');
      await run(part, replies.read);
      // The engine works in this thread: while it did, no timer could see that the client was not the silent one.
      silence.refresh();
      if (replies.isIdle()) await mine.release();
      if (socket.writableNeedDrain) await drained(socket);
    };
    // A start-up message is none of those that the session of a guest knows.
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
 * Whose client this is by its start-up message: the gateway's own, or a guest. It is lost if it is that of another
 * gateway, whose folder was replaced, and which took this one's socket for its own.
 */
function clientOf(settings: readonly Setting[], ownName: string | undefined): 'own' | 'guest' | 'lost' {
  const name = settings.find((each) => each.name === 'application_name')?.setting ?? '';
  if (name === ownName) return 'own';
  return name.startsWith(ownNamePrefix) ? 'lost' : 'guest';
}

/**
 * Drops a client that keeps silent in its turn while others wait.
 * @returns a timer, to be refreshed whenever the client is heard of, and to be cleared in the end.
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

/** Waits until the client has read what it was sent, or is gone. */
function drained(socket: Socket): Promise<void> {
  return new Promise((settle) => {
    const done = () => {
      socket.off('drain', done).off('close', done);
      settle();
    };
    socket.on('drain', done).on('close', done);
  });
}
