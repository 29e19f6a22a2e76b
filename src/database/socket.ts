/**
 * Offers a PGlite to several connections, each of which believes it has a PostgreSQL of its own.
 *
 * PGlite is a single PostgreSQL session. Two clients whose messages mix in it would bind their parameters to
 * each other's statements, so a client gets the engine for a whole turn: from its first message until the
 * engine says that it is idle, outside of any transaction. `@electric-sql/pglite-socket` hands out single
 * messages instead, and mixes them up under load.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';

/** The code in place of a version in the two messages that may come before the start-up message. */
const sslRequest = 80_877_103;
const gssEncryptionRequest = 80_877_104;
const cancelRequest = 80_877_102;

/** How long, in milliseconds, a client may sit silent in its turn while others wait. */
const silenceLimit = 10_000;

/** Told of what `NOTIFY` sends on any channel that the engine listens to. */
export type NotificationListener = (channel: string, payload: string) => void;

/**
 * A server for the engine. All its clients share one session, so a notification would reach whoever's turn it
 * is: it goes to `onNotification` instead, before the client whose turn it is hears that its statement is done.
 */
export function serveEngine(
  engine: PGlite,
  onNotification: NotificationListener,
): Server & { closeConnections(): void } {
  const turns = createTurns();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    converse(engine, socket, turns, onNotification)
      .catch(() => {})
      .finally(() => socket.destroy());
  });
  return Object.assign(server, {
    closeConnections() {
      for (const socket of sockets) socket.destroy();
    },
  });
}

async function converse(
  engine: PGlite,
  socket: Socket,
  turns: Turns,
  onNotification: NotificationListener,
): Promise<void> {
  let endTurn: (() => void) | undefined;
  const silence = setTimeout(() => {
    if (endTurn && turns.waiting() > 0) socket.destroy();
    else silence.refresh();
  }, silenceLimit);
  try {
    for await (const message of messagesOf(socket)) {
      silence.refresh();
      if (message.kind === 'encryption request') {
        socket.write('N');
        continue;
      }
      // There is no process to signal: a query runs to its end. 'X' says goodbye.
      if (message.kind === 'cancel request' || message.bytes[0] === 0x58) return;
      endTurn ??= await turns.take();
      let idle = false;
      const forward = withoutNotifications(onNotification, (data) => {
        idle = endsIdle(data);
        socket.write(data);
      });
      await engine.runExclusive(() =>
        // The engine reuses the memory of what it hands over.
        engine.execProtocolRawStream(message.bytes, { onRawData: (data) => forward(Buffer.from(data)) }),
      );
      if (idle) {
        endTurn();
        endTurn = undefined;
      }
    }
  } finally {
    clearTimeout(silence);
    if (endTurn) {
      // The client left in mid-turn: what it began must not stay for the next one.
      await engine.exec('ROLLBACK').catch(() => {});
      endTurn();
    }
  }
}

/** Whether the data ends with ReadyForQuery in the state `I`: the engine is in no transaction. */
function endsIdle(data: Uint8Array): boolean {
  const end = data.length;
  return end >= 6 && data[end - 6] === 0x5a && data[end - 2] === 5 && data[end - 1] === 0x49;
}

/** Passes on the engine's messages, whole, except notifications. */
function withoutNotifications(onNotification: NotificationListener, pass: (data: Buffer) => void) {
  let buffer: Buffer = Buffer.alloc(0);
  return (chunk: Buffer) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk]);
    let passed = 0;
    let end = 0;
    for (;;) {
      const length = messageLength(buffer, end);
      if (length === undefined) break;
      if (buffer[end] === 0x41) {
        if (end > passed) pass(buffer.subarray(passed, end));
        // The process id, then the channel and the payload, each ended by a zero byte.
        const [channel = '', payload = ''] = buffer.toString('utf8', end + 9, end + length).split('\0');
        onNotification(channel, payload);
        passed = end + length;
      }
      end += length;
    }
    if (end > passed) pass(buffer.subarray(passed, end));
    buffer = buffer.subarray(end);
  };
}

/** The length of the message at the offset, or undefined if it is not there yet in full. */
function messageLength(buffer: Buffer, offset: number): number | undefined {
  if (buffer.length < offset + 5) return undefined;
  // The first byte is the type, the next four the length of all that follows the type.
  const length = 1 + buffer.readInt32BE(offset + 1);
  return buffer.length < offset + length ? undefined : length;
}

interface Message {
  kind: 'encryption request' | 'cancel request' | 'message';
  bytes: Uint8Array;
}

/**
 * Cuts the stream into messages (PostgreSQL's documentation, "Message Formats"). Messages that arrived together
 * stay together, since the engine works through several in one call faster than through each in its own.
 */
async function* messagesOf(socket: Socket): AsyncGenerator<Message> {
  let buffer: Buffer = Buffer.alloc(0);
  let started = false;
  for await (const chunk of socket) {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk]);
    while (!started && buffer.length >= 8) {
      const length = buffer.readInt32BE(0);
      if (buffer.length < length) break;
      const code = buffer.readInt32BE(4);
      const bytes = new Uint8Array(buffer.subarray(0, length));
      buffer = buffer.subarray(length);
      if (code === cancelRequest) yield { kind: 'cancel request', bytes };
      else if (code === sslRequest || code === gssEncryptionRequest)
        yield { kind: 'encryption request', bytes };
      else {
        started = true;
        yield { kind: 'message', bytes };
      }
    }
    if (!started) continue;
    let end = 0;
    for (let length = messageLength(buffer, 0); length !== undefined; length = messageLength(buffer, end))
      end += length;
    if (end === 0) continue;
    const bytes = new Uint8Array(buffer.subarray(0, end));
    buffer = buffer.subarray(end);
    yield { kind: 'message', bytes };
  }
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
