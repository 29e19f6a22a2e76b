/**
 * Cuts what a client sends into parts for the engine. Everything on which the engine would end, and everybody's
 * connection with it, is dealt with here.
 */

import type { Socket } from 'node:net';
import { message, type } from './protocol.ts';

export interface Setting {
  readonly name: string;
  readonly setting: string;
}

/**
 * The parts of what a client sends: first its start-up message, then messages. Those that arrived together stay
 * together, since the engine works through several in one call faster than through each in its own. Ends when the
 * client says goodbye or leaves.
 * @throws {RangeError} when the client sends what no client sends.
 */
export async function* readParts(socket: Socket): AsyncGenerator<Buffer, undefined> {
  const cutMessages = createMessageCutter();
  let chunks: Buffer[] = [];
  let size = 0;
  /** How much there has to be before another look is worth it: a long message comes in many chunks. */
  let needed = 0;
  let hasStarted = false;
  // The server may have something left to say to a client of which it reads no more.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let buffer: Buffer = Buffer.concat(chunks);
    needed = 0;

    while (!hasStarted) {
      const opening = openingIn(buffer);
      if (opening === undefined) break;
      // There is no process to signal: a query runs to its end.
      if (opening.kind === 'cancel request') return;
      // On a Unix socket there is nobody to hide from: the client is told to go on without.
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

/** The code in place of a version in the messages that may come before the start-up message. */
const sslRequest = 80_877_103;
const gssEncryptionRequest = 80_877_104;
const cancelRequest = 80_877_102;

/** The upper half of what stands in the start-up message. */
const protocolVersion = 3;

/** PostgreSQL's own limits: of a start-up message, and of any other. */
const longestStartup = 10_000;
const longestMessage = 2 ** 30 - 1;

interface Opening {
  readonly kind: 'encryption request' | 'cancel request' | 'start-up';
  readonly length: number;
}

/** What a connection begins with, or undefined if not all of it has come. These messages have no type. */
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
  /** The beginning of a message whose end has not come. */
  readonly rest: Buffer;
  /** How long that message is, if that can be said already. */
  readonly needed: number;
  readonly isGoodbye: boolean;
}

/** The types of the messages that a client may send once it is connected, which is without a password. */
const ofClients = new Set(Array.from('BCDEFHPQSXcdf', type));

/**
 * Goes behind what may be a COPY FROM STDIN, and makes it fail. PGlite reads the rows at once or not at all: left
 * without, it ends, and every connection with it. Behind anything else the message means nothing.
 */
const copyFail = message('f', 'the embedded PostgreSQL cannot copy from a client');

function createMessageCutter(): (buffer: Buffer) => Cut {
  /** Whether a COPY FROM STDIN may have been prepared, which any later message can execute. */
  let mayCopy = false;
  return (buffer) => {
    const messages: Buffer[] = [];
    let rest = buffer;
    // The first byte is the type, the next four the length of all that follows the type.
    while (rest.length >= 5) {
      const end = 1 + lengthAt(rest, 1, 4, longestMessage);
      if (rest.length < end) return { messages, rest, needed: end, isGoodbye: false };
      const kind = rest[0];
      // The engine would end on it.
      if (kind === undefined || !ofClients.has(kind))
        throw new RangeError(`no client sends messages of type ${kind}`);
      // The engine would take the goodbye for itself, and end.
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

/**
 * What a start-up message sets.
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
