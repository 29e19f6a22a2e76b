/**
 * Offers a PGlite to several connections, each of which believes it has a PostgreSQL of its own.
 *
 * PGlite is a single PostgreSQL session. Two clients whose messages mix in it would bind their parameters to
 * each other's statements, so a client gets the engine for a whole turn: from its first message until the
 * engine says that it is idle, outside of any transaction. `@electric-sql/pglite-socket` hands out single
 * messages instead, and mixes them up under load.
 *
 * The gateway's own clients set nothing that outlives a transaction, and their turns cost nothing more. Those of
 * guests, who are all others, end with the session as it was (`guest.ts`).
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { errorText } from '../../errors.ts';
import { createGuestSession, type GuestSession, type Run, type Setting } from './guest.ts';
import { message, report, type } from './protocol.ts';

/**
 * Told of what `NOTIFY` sends on any channel that the engine listens to. The payload is empty when a guest may have
 * changed anything without a word of it.
 */
export type NotificationListener = (channel: string, payload: string) => void;

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
  engine: PGlite,
  onNotification: NotificationListener,
  { silenceLimit = 10_000, ownName, findObstacle = () => undefined }: SocketOptions = {},
): EngineServer {
  const sockets = new Set<Socket>();
  const runner = createRunner(engine, findObstacle);
  const { failure, hasFailed, check } = runner;
  const service = { ...runner, turns: createTurns(), onNotification, silenceLimit, ownName };
  const server = createServer((socket) => {
    if (hasFailed()) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    converse(socket, service)
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

interface Service extends Runner {
  readonly turns: Turns;
  readonly onNotification: NotificationListener;
  readonly silenceLimit: number;
  readonly ownName: string | undefined;
}

async function converse(socket: Socket, service: Service): Promise<void> {
  const { turns, silenceLimit } = service;
  let endTurn: (() => void) | undefined;
  let guest: GuestSession | undefined;
  const silence = setTimeout(() => {
    if (endTurn && turns.waiting() > 0) {
      socket.write(idleTooLong);
      socket.destroy();
    } else silence.refresh();
  }, silenceLimit);
  const replies = createReplyReader((data) => socket.write(data), service.onNotification);
  try {
    for await (const part of partsOf(socket)) {
      silence.refresh();
      if (part === 'encryption request') {
        socket.write('N');
        continue;
      }
      if (part === 'goodbye') return;
      const settings = startupSettings(part);
      if (settings) {
        const { setting: name } = settings.find((each) => each.name === 'application_name') ?? {
          setting: '',
        };
        // Its folder was replaced, and it took the new one's socket for its own.
        if (name !== service.ownName && name.startsWith(ownNamePrefix)) return;
        if (name !== service.ownName) {
          guest = createGuestSession(service, settings);
          replies.holdIdle();
        }
      }
      if (!endTurn) {
        endTurn = await turns.take();
        await guest?.begin();
      }
      // A start-up message is none of those that a session knows.
      await (settings || !guest ? service : guest).run(part, replies.read);
      // The engine works in this thread: while it did, no timer could see that the client was not the silent one.
      silence.refresh();
      if (replies.sayIdle()) {
        if (guest) await endGuestTurn(guest, socket, service);
        replies.release();
        endTurn();
        endTurn = undefined;
      }
      if (socket.writableNeedDrain) await drained(socket);
    }
  } catch (error) {
    if (error instanceof RangeError) socket.write(report('FATAL', '08P01', errorText(error)));
    else if (guest && endTurn) socket.write(report('FATAL', '57P01', errorText(error)));
    throw error;
  } finally {
    clearTimeout(silence);
    if (endTurn) {
      // The client left in mid-turn: what it began must not stay for the next one.
      await service.run(abandon, () => {}).catch(() => {});
      if (guest) await endGuestTurn(guest, socket, service).catch(() => {});
      endTurn();
    }
  }
}

/** @throws why the guest cannot go on, if it cannot. */
async function endGuestTurn(guest: GuestSession, socket: Socket, { onNotification }: Service): Promise<void> {
  const { unheard, ended, error } = await guest.end();
  for (const channel of unheard) onNotification(channel, '');
  if (error !== undefined) throw error;
  if (ended.length > 0) {
    const text = `the embedded database ends with each statement or transaction: ${ended.join(', ')}`;
    socket.write(report('NOTICE', '01000', text));
  }
}

/**
 * What a start-up message sets, or undefined if the message is none. Its type would be where its length is.
 * @throws when the engine would end on it.
 */
function startupSettings(part: Buffer): Setting[] | undefined {
  if (part[0] !== 0) return undefined;
  const texts = part.toString('utf8', 8).split('\0');
  const settings: Setting[] = [];
  let at = 0;
  for (; texts[at]; at += 2) {
    const [name = '', setting = ''] = texts.slice(at, at + 2);
    if (name === 'replication') throw new RangeError('the embedded database does not replicate');
    if (name === 'options') settings.push(...settingsIn(setting));
    else if (!ofConnection.test(name)) settings.push({ name, setting });
  }
  // The name that is empty is the last text, and ends with a zero byte.
  if (at !== texts.length - 2) throw new RangeError('a start-up message is names and values');
  return settings;
}

/** What the options of a command line set, as PGOPTIONS has them: `-c name=value` and `--name=value`. */
function settingsIn(options: string): Setting[] {
  const found = options.matchAll(/(?<!\S)(?:-c\s*|--)([^\s=]+)=((?:\\.|[^\\\s])*)/gs);
  return Array.from(found, ([, name = '', value = '']) => ({
    name: name.replaceAll('-', '_'),
    setting: value.replace(/\\(.)/gs, '$1'),
  }));
}

/** What a start-up message says that is no setting. */
const ofConnection = /^(?:user|database|_pq_\..*)$/;

/** What an error says that leaves the engine in an unknown state, such as a disk too full for the write-ahead log. */
const panic = Buffer.from('VPANIC\0');

type Runner = ReturnType<typeof createRunner>;

/**
 * Runs the engine until it fails. After a panic a server would start anew; this engine stays, and the next message
 * would keep this thread busy for ever.
 */
function createRunner(engine: PGlite, findObstacle: () => Error | undefined) {
  let failed: Error | undefined;
  let settle = (_error: Error) => {};
  const failure = new Promise<Error>((resolve) => {
    settle = resolve;
  });
  const fail = (error: Error) => {
    failed ??= error;
    settle(failed);
  };
  stopAtExceptions(engine, fail);

  const check = () => {
    const obstacle = failed ?? findObstacle();
    if (obstacle) fail(obstacle);
  };
  const assertUsable = () => {
    check();
    if (failed) throw failed;
  };
  const run: Run = (messages, onReply) =>
    engine.runExclusive(async () => {
      assertUsable();
      try {
        await engine.execProtocolRawStream(messages, {
          onRawData(data) {
            // What comes from an engine that has failed means nothing.
            if (failed) return;
            // The piece is in the engine's memory, which its next one overwrites.
            const piece = Buffer.from(data);
            // An error comes in a piece that begins with it.
            if (piece[0] === type('E') && piece.includes(panic)) fail(new Error(messageOf(piece)));
            onReply(piece);
          },
        });
      } catch (error) {
        // What is wrong with a statement is said in a reply.
        if (!engine.closed) fail(error instanceof Error ? error : new Error(String(error)));
        throw error;
      }
    });
  const ask = async <Row>(sql: string, values?: unknown[]): Promise<Row[]> => {
    assertUsable();
    return (await engine.query<Row>(sql, values)).rows;
  };
  const askAll = async <Rows extends unknown[]>(sql: readonly string[]) => {
    assertUsable();
    const results = await engine.exec(sql.join(';'));
    // One result for each statement, whose columns the caller knows.
    return results.map(({ rows }) => rows) as { [Each in keyof Rows]: Rows[Each][] };
  };
  const reset = async (commands: readonly string[]) => {
    assertUsable();
    try {
      for (const command of commands) await engine.exec(command);
    } catch (error) {
      if (!engine.closed) fail(new Error('the session could not be reset', { cause: error }));
      throw error;
    }
  };
  return { run, ask, askAll, reset, check, failure, hasFailed: () => failed !== undefined };
}

/** With this status PGlite throws what PostgreSQL would jump with to the handling of an error. */
const jump = 100;

/**
 * Has the engine fail by an exception that is not PostgreSQL's own: deep recursion, a function that the engine lacks.
 * PGlite passes over them, though they leave the engine in the middle of what it did, where the next message may keep
 * this thread busy for ever.
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
        // PGlite catches what is thrown here and looks at this, outside of its `try`: so it gets out of its loop.
        get status() {
          throw failure;
        },
      };
    }
  };
}

/** What an error message of the engine says for people. */
function messageOf(error: Buffer): string {
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

/**
 * Ends whatever a client was in the midst of. A batch is broken first, by executing a portal that does not exist:
 * the Sync, without which the engine would pass over the ROLLBACK after an error, would otherwise commit it.
 */
const abandon = Buffer.concat([
  message('E', 'abandoned', Buffer.alloc(4)),
  message('S'),
  message('Q', 'ROLLBACK'),
]);

const idleTooLong = report(
  'FATAL',
  '25P03',
  'terminating connection: it kept silent in a transaction while others waited',
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
  /** From now on, keeps the message back that says so, until told to release it or until another one comes. */
  holdIdle(): void;
  release(): void;
}

/** These may come at any time, and say nothing about the command at hand: notices and settings. */
const asides = [type('N'), type('S')];

const readyForQuery = message('Z', Buffer.from('I'));

/**
 * Follows the engine's messages: tells one that says idle from data that looks like it, takes out notifications,
 * and passes the rest on as it comes.
 */
function createReplyReader(send: (data: Buffer) => void, onNotification: NotificationListener): ReplyReader {
  /** What came of a message's head, which is five bytes: its type, and the length of all that follows the type. */
  let head: Buffer = Buffer.alloc(0);
  let kind = 0;
  let bodyLeft = 0;
  /** The body of a message that is taken out. */
  let body: Buffer[] = [];
  let idle = false;
  let taken = [type('A')];
  let isHeld = false;
  const release = () => {
    if (isHeld) send(readyForQuery);
    isHeld = false;
  };
  const pass = (data: Buffer) => {
    release();
    send(data);
  };
  const take = (message: Buffer) => {
    if (kind === type('Z')) {
      release();
      if (idle) isHeld = true;
      else send(readyInTransaction(message));
      return;
    }
    // The process id, then the channel and the payload, each ended by a zero byte.
    const [channel = '', payload = ''] = message.toString('utf8', 4).split('\0');
    onNotification(channel, payload);
  };
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
          if (taken.includes(kind)) passOn();
          if (kind !== type('A') && !asides.includes(kind)) idle = false;
          at += 5;
        }
        const step = Math.min(bodyLeft, data.length - at);
        const isTaken = taken.includes(kind);
        if (kind === type('Z') && step > 0) idle = data[at] === type('I');
        if (isTaken) body.push(data.subarray(at, at + step));
        at += step;
        bodyLeft -= step;
        if (!isTaken) continue;
        passed = at;
        if (bodyLeft > 0) continue;
        const whole = Buffer.concat(body);
        body = [];
        take(whole);
      }
      passOn();
    },
    sayIdle: () => idle,
    holdIdle() {
      taken = [type('A'), type('Z')];
    },
    release,
  };
}

const readyInTransaction = (status: Buffer) => message('Z', status);

/** The code in place of a version in the messages that may come before the start-up message. */
const sslRequest = 80_877_103;
const gssEncryptionRequest = 80_877_104;
const cancelRequest = 80_877_102;

/** The upper half of what stands in the start-up message. */
const protocolVersion = 3;

/** The types of the messages that a client may send once it is connected, which is without a password. */
const ofClients = new Set(Array.from('BCDEFHPQSXcdf', type));

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
  // Whoever stops reading may have something left to say.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
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
      else if (code >>> 16 !== protocolVersion)
        throw new RangeError('a client speaks version 3 of the protocol');
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
      // The engine would end on it, and everybody's connection with it.
      if (kind === undefined || !ofClients.has(kind))
        throw new RangeError(`no client sends messages of type ${kind}`);
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

/** @throws {RangeError} when the length is one that no message has: what follows cannot be told apart any more. */
function lengthAt(buffer: Buffer, at: number, least: number, most: number): number {
  const length = buffer.readInt32BE(at);
  if (length < least || length > most) throw new RangeError(`a message cannot be ${length} bytes long`);
  return length;
}

interface Turns {
  /** Waits for the turn, and gives what ends it. */
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
