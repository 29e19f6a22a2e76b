/**
 * Splits the bytes that a client sends into messages for the engine, and removes or rejects every message that would end the
 * engine, and with it the connections of all clients.
 */

import type { Socket } from 'node:net';
import { message, type } from './protocol.ts';

export interface Setting {
  readonly name: string;
  readonly setting: string;
}

/**
 * Yields the start-up message of a client, and then its messages. Messages that arrived together are yielded together, since
 * the engine is faster with several messages in one call. Ends when the client sends Terminate or disconnects.
 * @throws {RangeError} when the client violates the protocol.
 */
export async function* readParts(socket: Socket): AsyncGenerator<Buffer, undefined> {
  const cutMessages = createMessageCutter();
  let chunks: Buffer[] = [];
  let size = 0;
  /** How many bytes are needed before the next message is complete: a long message comes in many chunks. */
  let needed = 0;
  let hasStarted = false;
  // The socket stays open: the server may have replies left to send when it stops reading.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let buffer: Buffer = Buffer.concat(chunks);
    needed = 0;

    while (!hasStarted) {
      const opening = openingIn(buffer);
      if (opening === undefined) break;
      // The engine cannot be interrupted: a query runs to its end.
      if (opening.kind === 'cancel request') return;
      // A Unix socket needs no encryption: N tells the client to go on without it.
      if (opening.kind === 'encryption request') socket.write('N');
      else {
        hasStarted = true;
        yield buffer.subarray(0, opening.length);
      }
      buffer = buffer.subarray(opening.length);
    }

    if (hasStarted) {
      const cut = cutMessages(buffer);
      if (cut.messages.length > 0) yield Buffer.concat(cut.messages);
      if (cut.isGoodbye) return;
      needed = cut.needed;
      buffer = cut.rest;
    }
    chunks = [buffer];
    size = buffer.length;
  }
}

/** The codes that stand in place of the protocol version in messages that may come before the start-up message. */
const sslRequest = 80_877_103;
const gssEncryptionRequest = 80_877_104;
const cancelRequest = 80_877_102;

/** The major version of the protocol: the upper 16 bits of the version in the start-up message. */
const protocolVersion = 3;

/** PostgreSQL's limits for the length, in bytes, of a start-up message and of any other message. */
const longestStartup = 10_000;
const longestMessage = 2 ** 30 - 1;

interface Opening {
  readonly kind: 'encryption request' | 'cancel request' | 'start-up';
  readonly length: number;
}

/** The first message of a connection, which has no type; undefined if it has not arrived completely. */
function openingIn(buffer: Buffer): Opening | undefined {
  if (buffer.length < 8) return undefined;
  const length = lengthAt(buffer, 0, 8, longestStartup);
  if (buffer.length < length) return undefined;
  const code = buffer.readInt32BE(4);
  if (code === cancelRequest) return { kind: 'cancel request', length };
  if (code === sslRequest || code === gssEncryptionRequest) return { kind: 'encryption request', length };
  if (code >>> 16 !== protocolVersion) throw new RangeError('a client speaks version 3 of the protocol');
  return { kind: 'start-up', length };
}

interface Cut {
  readonly messages: readonly Buffer[];
  /** The beginning of a message that has not arrived completely. */
  readonly rest: Buffer;
  /** The length of that message, if it is known already. */
  readonly needed: number;
  readonly isGoodbye: boolean;
}

/** The types of the messages that a connected client may send. Passwords are not used, so their type is missing. */
const ofClients = new Set(Array.from('BCDEFHPQSXcdf', type));

/**
 * Is sent behind each statement that may be a COPY FROM STDIN, and makes it fail. PGlite needs the rows in the same call: it
 * would end without them. After any other statement, the engine ignores this message.
 */
const copyFail = message('f', 'the embedded PostgreSQL cannot copy from a client');

function createMessageCutter(): (buffer: Buffer) => Cut {
  /** Whether a COPY FROM STDIN may have been prepared. From then on any message may execute it. */
  let mayCopy = false;
  return (buffer) => {
    const messages: Buffer[] = [];
    let rest = buffer;
    // The first byte is the type, the next four the length of all that follows the type.
    while (rest.length >= 5) {
      const end = 1 + lengthAt(rest, 1, 4, longestMessage);
      if (rest.length < end) return { messages, rest, needed: end, isGoodbye: false };
      const kind = rest[0];
      // The engine would end on an unknown type.
      if (kind === undefined || !ofClients.has(kind))
        throw new RangeError(`no client sends messages of type ${kind}`);
      // On Terminate the engine would end.
      if (kind === type('X')) return { messages, rest, needed: 0, isGoodbye: true };
      const whole = rest.subarray(0, end);
      rest = rest.subarray(end);
      messages.push(whole);
      mayCopy ||= (kind === type('Q') || kind === type('P')) && mentionsCopy(whole);
      if (mayCopy && (kind === type('Q') || kind === type('E'))) messages.push(copyFail);
    }
    return { messages, rest, needed: 0, isGoodbye: false };
  };
}

/** Whether the text may contain a COPY FROM STDIN. A false positive does no harm. */
function mentionsCopy(text: Buffer): boolean {
  return /\bcopy\b.*\bstdin\b/is.test(text.toString('latin1'));
}

/** @throws {RangeError} when no message has this length. The messages behind it cannot be found then. */
function lengthAt(buffer: Buffer, at: number, least: number, most: number): number {
  const length = buffer.readInt32BE(at);
  if (length < least || length > most) throw new RangeError(`a message cannot be ${length} bytes long`);
  return length;
}

/**
 * The settings in a start-up message.
 * @throws {RangeError} when the engine would end on the message.
 */
export function startupSettings(startup: Buffer): Setting[] {
  const texts = startup.toString('utf8', 8).split('\0');
  const settings: Setting[] = [];
  let at = 0;
  for (; texts[at]; at += 2) {
    const [name = '', setting = ''] = texts.slice(at, at + 2);
    if (name === 'replication') throw new RangeError('the embedded database does not replicate');
    if (name === 'options') settings.push(...settingsIn(setting));
    else if (!ofConnection.test(name)) settings.push({ name, setting });
  }
  // The list ends with an empty name, which is the last text before the final zero byte.
  if (at !== texts.length - 2) throw new RangeError('a start-up message is names and values');
  return settings;
}

/** The settings in command-line options, such as those of PGOPTIONS: `-c name=value` and `--name=value`. */
function settingsIn(options: string): Setting[] {
  const found = options.matchAll(/(?<!\S)(?:-c\s*|--)([^\s=]+)=((?:\\.|[^\\\s])*)/gs);
  return Array.from(found, ([, name = '', value = '']) => ({
    name: name.replaceAll('-', '_'),
    setting: value.replace(/\\(.)/gs, '$1'),
  }));
}

/** The names in a start-up message that are not settings. */
const ofConnection = /^(?:user|database|_pq_\..*)$/;
