/**
 * Offers a PGlite to several connections, each of which believes it has a PostgreSQL of its own.
 *
 * PGlite is a single PostgreSQL session. Two clients whose messages mix in it would bind their parameters to
 * each other's statements, so a client gets the engine for a whole turn: from its first message until the
 * engine says that it is idle, outside of any transaction. `@electric-sql/pglite-socket` hands out single
 * messages instead, and mixes them up under load.
 *
 * What outlives a transaction is still shared, since the session is: SET without LOCAL, and the names of prepared
 * statements. Nothing here uses either.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';

/** Told of what `NOTIFY` sends on any channel that the engine listens to. */
export type NotificationListener = (channel: string, payload: string) => void;

export interface SocketOptions {
  /** How long, in milliseconds, a client may sit silent in its turn while others wait. */
  silenceLimit?: number;
}

export interface EngineServer extends Server {
  closeConnections(): void;
  /** Settles when the engine has failed. From then on it is not touched any more, and nobody is connected. */
  readonly failure: Promise<Error>;
  hasFailed(): boolean;
}

/**
 * A server for the engine; its connections are its own to close. Its clients share one session, so a notification
 * would reach whoever's turn it is. It goes to `onNotification` instead, before the client whose turn it is hears
 * that its statement is done.
 */
export function serveEngine(
  engine: PGlite,
  onNotification: NotificationListener,
  { silenceLimit = 10_000 }: SocketOptions = {},
): EngineServer {
  const turns = createTurns();
  const sockets = new Set<Socket>();
  const { run, failure, hasFailed } = createRunner(engine);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    converse(run, socket, turns, onNotification, silenceLimit)
      .catch(() => {})
      .finally(() => socket.destroy());
  });
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  failure.then(() => {
    server.close();
    closeConnections();
  });
  return Object.assign(server, { closeConnections, failure, hasFailed });
}

async function converse(
  run: Run,
  socket: Socket,
  turns: Turns,
  onNotification: NotificationListener,
  silenceLimit: number,
): Promise<void> {
  let endTurn: (() => void) | undefined;
  const silence = setTimeout(() => {
    if (endTurn && turns.waiting() > 0) {
      socket.write(idleTooLong);
      socket.destroy();
    } else silence.refresh();
  }, silenceLimit);
  const replies = createReplyReader((data) => socket.write(data), onNotification);
  try {
    for await (const part of partsOf(socket)) {
      silence.refresh();
      if (part === 'encryption request') {
        socket.write('N');
        continue;
      }
      if (part === 'goodbye') return;
      endTurn ??= await turns.take();
      await run(part, replies.read);
      // The engine works in this thread: while it did, no timer could see that the client was not the silent one.
      silence.refresh();
      if (replies.sayIdle()) {
        endTurn();
        endTurn = undefined;
      }
      if (socket.writableNeedDrain) await drained(socket);
    }
  } finally {
    clearTimeout(silence);
    if (endTurn) {
      // The client left in mid-turn: what it began must not stay for the next one.
      await run(abandon, () => {}).catch(() => {});
      endTurn();
    }
  }
}

/** Hands messages to the engine, and its answer on, in pieces cut anywhere. */
type Run = (messages: Uint8Array, onReply: (data: Buffer) => void) => Promise<void>;

/** What an error says that leaves the engine in an unknown state, such as a disk too full for the write-ahead log. */
const panic = Buffer.from('VPANIC\0');

/**
 * Runs the engine until it fails. After a panic a server would start anew; this engine stays, and the next message
 * would keep this thread busy for ever.
 */
function createRunner(engine: PGlite) {
  let failed: Error | undefined;
  let fail = (_error: Error) => {};
  const failure = new Promise<Error>((settle) => {
    fail = (error) => {
      failed ??= error;
      settle(error);
    };
  });
  const run: Run = (messages, onReply) =>
    engine.runExclusive(async () => {
      if (failed) throw failed;
      try {
        await engine.execProtocolRawStream(messages, {
          onRawData(data) {
            // The piece is in the engine's memory, which its next one overwrites.
            const piece = Buffer.from(data);
            // An error comes in a piece that begins with it.
            if (piece[0] === type('E') && piece.includes(panic)) fail(new Error(textOf(piece)));
            onReply(piece);
          },
        });
      } catch (error) {
        // What is wrong with a statement is said in a reply.
        if (!engine.closed) fail(error instanceof Error ? error : new Error(String(error)));
        throw error;
      }
    });
  return { run, failure, hasFailed: () => failed !== undefined };
}

/** What an error message of the engine says for people. */
function textOf(error: Buffer): string {
  return /\0M([^\0]*)/.exec(error.toString())?.[1] ?? '';
}

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

/** The types of messages are letters (PostgreSQL's documentation, "Message Formats"). */
const type = (letter: string) => letter.charCodeAt(0);

function message(letter: string, ...fields: (string | Buffer)[]): Buffer {
  // A field of text ends with a zero byte.
  const body = Buffer.concat(
    fields.map((field) => (Buffer.isBuffer(field) ? field : Buffer.from(`${field}\0`))),
  );
  const head = Buffer.alloc(5, letter);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

/**
 * Ends whatever a client was in the midst of. A batch is broken first, by executing a portal that does not exist:
 * the Sync, without which the engine would pass over the ROLLBACK after an error, would otherwise commit it.
 */
const abandon = Buffer.concat([
  message('E', 'abandoned', Buffer.alloc(4)),
  message('S'),
  message('Q', 'ROLLBACK'),
]);

const idleTooLong = message(
  'E',
  'SFATAL',
  'VFATAL',
  'C25P03',
  'Mterminating connection: it kept silent in a transaction while others waited',
  '',
);

/**
 * Goes behind what may be a COPY FROM STDIN, and makes it fail. PGlite reads the rows at once or not at all: left
 * without, it ends, and every connection with it. Behind anything else the message means nothing.
 */
const copyFail = message('f', 'the embedded PostgreSQL cannot copy from a client');

interface ReplyReader {
  read(data: Buffer): void;
  /** Whether the last message read said that the engine is in no transaction and waits for the next command. */
  sayIdle(): boolean;
}

/** These may come at any time, and say nothing about the command at hand: notices and settings. */
const asides = [type('N'), type('S')];

/**
 * Follows the engine's messages: tells one that says idle from data that looks like it, takes out notifications,
 * and passes the rest on as it comes.
 */
function createReplyReader(pass: (data: Buffer) => void, onNotification: NotificationListener): ReplyReader {
  /** What came of a message's head, which is five bytes: its type, and the length of all that follows the type. */
  let head: Buffer = Buffer.alloc(0);
  let kind = 0;
  let bodyLeft = 0;
  let notification: Buffer[] = [];
  let idle = false;
  return {
    read(chunk) {
      const data = head.length > 0 ? Buffer.concat([head, chunk]) : chunk;
      head = Buffer.alloc(0);
      let passed = 0;
      let at = 0;
      const passOn = () => {
        if (at > passed) pass(data.subarray(passed, at));
        passed = at;
      };
      while (at < data.length) {
        if (bodyLeft === 0) {
          if (data.length - at < 5) {
            passOn();
            head = data.subarray(at);
            return;
          }
          kind = data[at] ?? 0;
          bodyLeft = data.readInt32BE(at + 1) - 4;
          if (kind === type('A')) passOn();
          else if (!asides.includes(kind)) idle = false;
          at += 5;
        }
        const step = Math.min(bodyLeft, data.length - at);
        if (kind === type('Z') && step > 0) idle = data[at] === type('I');
        if (kind === type('A')) notification.push(data.subarray(at, at + step));
        at += step;
        bodyLeft -= step;
        if (kind !== type('A')) continue;
        passed = at;
        if (bodyLeft > 0) continue;
        // The process id, then the channel and the payload, each ended by a zero byte.
        const [channel = '', payload = ''] = Buffer.concat(notification).toString('utf8', 4).split('\0');
        notification = [];
        onNotification(channel, payload);
      }
      passOn();
    },
    sayIdle: () => idle,
  };
}

/** The code in place of a version in the messages that may come before the start-up message. */
const sslRequest = 80_877_103;
const gssEncryptionRequest = 80_877_104;
const cancelRequest = 80_877_102;

/** PostgreSQL's own limits: of a start-up message, and of any other. */
const longestStartup = 10_000;
const longestMessage = 2 ** 30 - 1;

/**
 * Cuts the stream into messages. Those that arrived together stay together, since the engine works through
 * several in one call faster than through each in its own.
 */
async function* partsOf(socket: Socket): AsyncGenerator<Buffer | 'encryption request' | 'goodbye'> {
  let chunks: Buffer[] = [];
  let size = 0;
  /** How much there has to be before another look is worth it: a long message comes in many chunks. */
  let needed = 0;
  let started = false;
  let mayCopy = false;
  for await (const chunk of socket) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let buffer = Buffer.concat(chunks);
    needed = 0;

    while (!started && buffer.length >= 8) {
      const length = lengthAt(buffer, 0, 8, longestStartup);
      if (buffer.length < length) break;
      const code = buffer.readInt32BE(4);
      // There is no process to signal: a query runs to its end.
      if (code === cancelRequest) yield 'goodbye';
      else if (code === sslRequest || code === gssEncryptionRequest) yield 'encryption request';
      else {
        started = true;
        yield buffer.subarray(0, length);
      }
      buffer = buffer.subarray(length);
    }

    const messages: Buffer[] = [];
    let leaves = false;
    // The first byte is the type, the next four the length of all that follows the type.
    while (started && !leaves && buffer.length >= 5) {
      const end = 1 + lengthAt(buffer, 1, 4, longestMessage);
      if (buffer.length < end) {
        needed = end;
        break;
      }
      const kind = buffer[0];
      const whole = buffer.subarray(0, end);
      buffer = buffer.subarray(end);
      // The engine would take the goodbye for itself, and end.
      leaves = kind === type('X');
      if (leaves) break;
      messages.push(whole);
      mayCopy ||= (kind === type('Q') || kind === type('P')) && mentionsCopy(whole);
      if (mayCopy && (kind === type('Q') || kind === type('E'))) messages.push(copyFail);
    }
    if (messages.length > 0) yield Buffer.concat(messages);
    if (leaves) yield 'goodbye';
    chunks = [buffer];
    size = buffer.length;
  }
}

/** Whether a COPY FROM STDIN could be in the text. Too often costs nothing. */
function mentionsCopy(text: Buffer): boolean {
  return /\bcopy\b.*\bstdin\b/is.test(text.toString('latin1'));
}

/** @throws when the length is one that no message has: what follows cannot be told apart any more. */
function lengthAt(buffer: Buffer, at: number, least: number, most: number): number {
  const length = buffer.readInt32BE(at);
  if (length < least || length > most) throw new RangeError(`a message cannot be ${length} bytes long`);
  return length;
}

interface Turns {
  /** Waits for the turn; call the answer to end it. */
  take(): Promise<() => void>;
  waiting(): number;
}

/** Lets one holder at a time in, in the order in which they asked. */
function createTurns(): Turns {
  let last = Promise.resolve();
  let asked = 0;
  return {
    take() {
      asked++;
      const before = last;
      let end = () => {};
      last = new Promise((settle) => {
        end = () => {
          asked--;
          settle();
        };
      });
      return before.then(() => end);
    },
    waiting: () => asked - 1,
  };
}
