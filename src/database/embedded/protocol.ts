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
  let rest: Buffer = Buffer.alloc(0);
  let typeLength = 0;
  // The socket stays open: the server may have replies left to send when it stops reading.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    rest = Buffer.concat([rest, chunk]);
    let end = 0;
    // On Terminate the engine would end.
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
      // After the head a process id of four bytes, the channel and the payload, each of which ends with a zero byte.
      const [channel = '', payload = ''] = replies.toString('utf8', at + 9, end).split('\0');
      onNotification(channel, payload);
      // Notices and settings too may come at any time, and do not say what the engine is doing.
    } else if (kind !== type('N') && kind !== type('S'))
      isIdle = kind === type('Z') && replies[at + 5] === type('I');
  }
  return isIdle;
}
