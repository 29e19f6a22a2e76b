/**
 * Serves the engine to the gateway and its commands, each of which seems to have a PostgreSQL session of its own.
 *
 * PGlite is a single session. Its clients take turns: a turn begins with the first message of a client, and ends when the
 * engine is idle outside of any transaction. Two clients whose messages mix would bind their parameters to each other's
 * statements. The gateway and its commands leave nothing in the session that outlives a transaction and matters to others (a dump has
 * cursors of its own), so nothing has to be reset between turns. Other clients might, so they are rejected.
 *
 * `@electric-sql/pglite-socket` is not used: it takes turns after single messages, and so mixes them.
 */

import { createServer, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { errorText } from '../../errors.ts';

/** The name by which the server knows the gateway's commands. It is no secret: it keeps out clients that cannot take turns. */
export const commandName = 'dovetail';

/** PGlite has one user and one database, and needs no password: the mode of the folder keeps other users out. */
export function connectionTo(host: string, name: string): pg.ClientConfig {
  return { host, user: 'postgres', database: 'postgres', application_name: name, ssl: false };
}

/**
 * @param names the names by which clients are known: the `application_name` with which they connect.
 * @param onNotification called with each notification. Only the gateway listens, but in a session that all clients share.
 * @param findObstacle called before each use of the engine. Returns an error if the engine must not be used any more.
 */
export function serveEngine(
  pglite: PGlite,
  names: readonly string[],
  onNotification: NotificationListener,
  findObstacle: () => Error | undefined = () => undefined,
) {
  const sockets = new Set<Socket>();
  const { run, failed } = createEngine(pglite, findObstacle);

  /** Waits for the caller's turn, in the order of the calls, and returns the function that ends it. */
  function takeTurn(): Promise<() => void> {
    return new Promise((begin) => {
      void pglite.runExclusive(() => new Promise<void>((end) => begin(end)));
    });
  }

  /** Serves one client until it disconnects, or an error ends its connection. */
  async function serveClient(socket: Socket): Promise<void> {
    let isKnown = false;
    let isIdle = true;
    let endTurn: (() => void) | undefined;
    try {
      for await (const messages of readMessages(socket)) {
        isKnown ||= names.some((name) => messages.includes(`\0application_name\0${name}\0`));
        if (!isKnown) {
          socket.write(notKnown);
          return;
        }
        endTurn ??= await takeTurn();
        // A client that disconnected while it waited counts its statement as failed, so it must not run later.
        if (isIdle && socket.destroyed) return;
        const replies = await run(messages);
        // Notifications are passed on before the client learns that its statement has been carried out.
        isIdle = readReplies(replies, isIdle, onNotification);
        socket.write(replies);
        if (!isIdle) continue;
        endTurn();
        endTurn = undefined;
      }
    } finally {
      // An engine that has failed cannot roll back. The client is gone, so the error has no receiver.
      if (endTurn) await run(rollback).catch(() => {});
      endTurn?.();
    }
  }

  const server = createServer((socket) => {
    if (failed.aborted) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    serveClient(socket)
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
  return Object.assign(server, {
    /** Stops listening, and closes all connections. An engine that has failed is stopped already. */
    stop,
    /** Aborted, with the error, when the engine has failed. */
    failed,
  });
}

const notKnown = fatal(
  '28000',
  'the embedded database serves the gateway and its commands alone: to share a database with other clients, move the data to a PostgreSQL server, and set DATABASE_URL: see Backups in docs/deployment.md',
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

/**
 * Runs the engine until it fails. A PostgreSQL server restarts after a panic, or after a crash of one of its processes.
 * PGlite does not, and the next message could keep this thread busy for ever. So after a failure the engine is not used
 * again, and each attempt fails with the same error.
 */
function createEngine(pglite: PGlite, findObstacle: () => Error | undefined) {
  // Keeps the first error as its reason.
  const failure = new AbortController();
  const failed = failure.signal;
  const fail = (error: Error) => failure.abort(error);
  stopAtExceptions(pglite, fail);

  /** Passes complete messages of the client whose turn it is to the engine, and returns its replies. */
  async function run(messages: Uint8Array): Promise<Buffer> {
    const obstacle = findObstacle();
    if (obstacle) fail(obstacle);
    failed.throwIfAborted();
    const pieces: Buffer[] = [];
    try {
      await pglite.execProtocolRawStream(messages, {
        onRawData(data) {
          // Copied, since the next piece overwrites this one in the memory of the engine.
          const piece = Buffer.from(data);
          // An error message is always at the beginning of a piece, and its text is a field of its own.
          if (piece[0] === type('E') && piece.includes(panic))
            fail(new Error(/\0M([^\0]*)/.exec(piece.toString())?.[1]));
          pieces.push(piece);
        },
      });
    } catch (error) {
      // An error of a statement comes as a reply, so this is a failure of the engine.
      if (!pglite.closed) fail(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    // Replies of an engine that has failed are not passed on.
    failed.throwIfAborted();
    return Buffer.concat(pieces);
  }

  return { run, failed };
}

/** Part of the error message of a panic, after which the state of the engine is unknown, as when the disk is full. */
const panic = Buffer.from('VPANIC\0');

/** The status of the exception that PGlite throws in place of the `longjmp` with which PostgreSQL handles an error. */
const jump = 100;

/**
 * Makes the engine fail on an exception that is not PostgreSQL's own, such as a stack overflow or a missing function.
 * PGlite ignores such exceptions, though they leave the engine in an undefined state.
 */
function stopAtExceptions({ Module }: PGlite, fail: (error: Error) => void): void {
  const loopOnce = Module._PostgresMainLoopOnce;
  Module._PostgresMainLoopOnce = () => {
    try {
      loopOnce();
    } catch (error) {
      // Anything can be thrown.
      if ((error as { status?: unknown } | undefined)?.status === jump) throw error;
      const failure = new Error(`the engine broke off: ${errorText(error)}`, { cause: error });
      fail(failure);
      throw {
        // PGlite catches this object and reads its status outside of its `try`. The getter throws, which ends its loop.
        get status() {
          throw failure;
        },
      };
    }
  };
}

// The parts of PostgreSQL's protocol that the server reads (its documentation, "Message Formats").

/** The type of a message is the code of a letter. */
const type = (letter: string) => letter.charCodeAt(0);

/** Writes a message. A text field is followed by a zero byte. */
export function message(letter: string, ...fields: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(
    fields.map((field) => (Buffer.isBuffer(field) ? field : Buffer.from(`${field}\0`))),
  );
  const head = Buffer.alloc(5, letter);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/** The error after which a connection is closed. */
export function fatal(code: string, text: string): Buffer {
  return message('E', 'SFATAL', 'VFATAL', `C${code}`, `M${text}`, '');
}

/**
 * Yields the first message of a client, which has no type, and then its other messages. Those that arrived together are
 * yielded together, since the engine is faster with several in one call. Ends when the client sends Terminate or disconnects.
 * @throws {RangeError} when no message has the length that the client says.
 */
async function* readMessages(socket: Socket): AsyncGenerator<Buffer, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let typeLength = 0;
  // The socket stays open: the server may have replies left to send when it stops reading.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest = Buffer.concat([rest, chunk]);
    let end = 0;
    // The engine must not get Terminate: it would end.
    const isTerminated = () => typeLength === 1 && rest[end] === type('X');
    while (rest.length >= end + typeLength + 4 && !isTerminated()) {
      const length = rest.readInt32BE(end + typeLength);
      if (length < 4) throw new RangeError(`a message cannot be ${length} bytes long`);
      if (rest.length < end + typeLength + length) break;
      end += typeLength + length;
      if (typeLength === 1) continue;
      typeLength = 1;
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
      end = 0;
    }
    if (end > 0) yield rest.subarray(0, end);
    if (isTerminated()) return;
    rest = rest.subarray(end);
  }
}

export type NotificationListener = (channel: string, payload: string) => void;

/**
 * Reads the replies of the engine to one call.
 * @param wasIdle whether the engine was idle before.
 * @returns whether it is idle now, outside of any transaction.
 */
function readReplies(replies: Buffer, wasIdle: boolean, onNotification: NotificationListener): boolean {
  let isIdle = wasIdle;
  let end = 0;
  for (let at = 0; at < replies.length; at = end) {
    end = at + 1 + replies.readInt32BE(at + 1);
    const kind = replies[at];
    if (kind === type('A')) {
      // After the head a process id of four bytes, the channel and the payload, each of which ends with a zero byte.
      const [channel = '', payload = ''] = replies.toString('utf8', at + 9, end).split('\0');
      onNotification(channel, payload);
      // Notices and settings too may come at any time, and do not say what the engine is doing.
    } else if (kind !== type('N') && kind !== type('S'))
      isIdle = kind === type('Z') && replies[at + 5] === type('I');
  }
  return isIdle;
}
