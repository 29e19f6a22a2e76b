/** What the server has to know of PostgreSQL's protocol (its documentation, "Message Formats"). */

import type { Socket } from 'node:net';

/** The type of a message is the code of a letter. */
export const type = (letter: string) => letter.charCodeAt(0);

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
export async function* readMessages(socket: Socket): AsyncGenerator<Buffer, undefined> {
  let chunks: Buffer[] = [];
  let size = 0;
  /** How many bytes are needed before the next message is complete: a long message comes in many chunks. */
  let needed = 4;
  let hasStarted = false;
  // The socket stays open: the server may have replies left to send when it stops reading.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let buffer: Buffer = Buffer.concat(chunks);
    if (!hasStarted) {
      needed = lengthAt(buffer, 0);
      if (size >= needed) {
        hasStarted = true;
        yield buffer.subarray(0, needed);
        buffer = buffer.subarray(needed);
      }
    }
    if (hasStarted) {
      const end = endOfMessages(buffer);
      if (end > 0) yield buffer.subarray(0, end);
      buffer = buffer.subarray(end);
      // On Terminate the engine would end.
      if (buffer[0] === type('X')) return;
      needed = buffer.length < headLength ? headLength : 1 + lengthAt(buffer, 1);
    }
    chunks = [buffer];
    size = buffer.length;
  }
}

/** The length of the head of a message: one byte for its type, four for the length of all that follows the type. */
const headLength = 5;

/** The offset up to which the buffer has complete messages, the first Terminate not included. */
function endOfMessages(buffer: Buffer): number {
  let end = 0;
  while (buffer.length - end >= headLength && buffer[end] !== type('X')) {
    const next = end + 1 + lengthAt(buffer, end + 1);
    if (next > buffer.length) break;
    end = next;
  }
  return end;
}

function lengthAt(buffer: Buffer, at: number): number {
  const length = buffer.readInt32BE(at);
  if (length < 4) throw new RangeError(`a message cannot be ${length} bytes long`);
  return length;
}

/** The `application_name` of a client, if its first message is a start-up message and says it. */
export function applicationNameIn(first: Buffer): string | undefined {
  if (first.length < 8 || first.readInt16BE(4) !== protocolVersion) return undefined;
  // Names and values in turns.
  const texts = first.toString('utf8', 8).split('\0');
  const at = texts.findIndex((text, index) => index % 2 === 0 && text === 'application_name');
  return at === -1 ? undefined : texts[at + 1];
}

/** The major version of the protocol: the upper 16 bits of the version in the start-up message. */
const protocolVersion = 3;

export type NotificationListener = (channel: string, payload: string) => void;

/**
 * Reads the replies of the engine to one call.
 * @param wasIdle whether the engine was idle before.
 * @returns whether it is idle now, outside of any transaction.
 */
export function readReplies(
  replies: Buffer,
  wasIdle: boolean,
  onNotification: NotificationListener,
): boolean {
  let isIdle = wasIdle;
  let end = 0;
  for (let at = 0; at < replies.length; at = end) {
    end = at + 1 + replies.readInt32BE(at + 1);
    const kind = replies[at];
    if (kind === type('A')) {
      // A process id of four bytes, the channel and the payload, each of which ends with a zero byte.
      const [channel = '', payload = ''] = replies.toString('utf8', at + headLength + 4, end).split('\0');
      onNotification(channel, payload);
      // Notices and settings too may come at any time, and do not say what the engine is doing.
    } else if (kind !== type('N') && kind !== type('S'))
      isIdle = kind === type('Z') && replies[at + headLength] === type('I');
  }
  return isIdle;
}
