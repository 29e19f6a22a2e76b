/** Reads the replies of the engine on their way to the client whose turn it is. */

import { message, type } from './protocol.ts';

/**
 * Called for each notification on a channel that the engine listens to. The payload is empty when a guest may have changed
 * data without a notification.
 */
export type NotificationListener = (channel: string, payload: string) => void;

export interface ReplyReader {
  read(data: Buffer): void;
  /** Whether the last reply was a ReadyForQuery outside of a transaction. */
  isIdle(): boolean;
  /** Sends the ReadyForQuery that was held back, if there is one. */
  release(): void;
}

/** Messages that may come at any time, whatever the command: notices, settings, notifications. */
const asides = [type('N'), type('S'), type('A')];

const readyForQuery = message('Z', Buffer.from('I'));

/**
 * Removes notifications from the replies of the engine, and passes the rest on as it comes. Pieces may end within a message,
 * and data may look like a message, so the reader goes by the lengths of messages.
 * @param holdsIdle whether a ReadyForQuery outside of a transaction is held back until `release`, or until the next message.
 */
export function createReplyReader(
  send: (data: Buffer) => void,
  onNotification: NotificationListener,
  holdsIdle: boolean,
): ReplyReader {
  const taken = holdsIdle ? [type('A'), type('Z')] : [type('A')];
  const out = createOutput(send);
  const cursor = createCursor();
  /** The received part of the body of a message that is removed. */
  let body: Buffer[] = [];
  let idle = false;

  function takeOut(piece: Buffer): void {
    body.push(piece);
    if (!cursor.isAtEnd()) return;
    const whole = Buffer.concat(body);
    body = [];
    if (cursor.kind() === type('A')) onNotification(...notificationIn(whole));
    else out.sayReady(whole, idle);
  }

  return {
    read(chunk) {
      const data = cursor.join(chunk);
      /** The offsets up to which messages were read, and up to which they were passed on or removed. */
      let at = 0;
      let done = 0;
      const passOn = () => {
        if (at > done) out.send(data.subarray(done, at));
        done = at;
      };
      while (at < data.length) {
        if (cursor.isAtEnd()) {
          if (!cursor.start(data, at)) break;
          if (!asides.includes(cursor.kind())) idle = false;
          if (taken.includes(cursor.kind())) passOn();
          at += headLength;
        }
        const start = at;
        at = cursor.advance(data, at);
        if (cursor.kind() === type('Z') && at > start) idle = data[start] === type('I');
        if (!taken.includes(cursor.kind())) continue;
        done = at;
        takeOut(data.subarray(start, at));
      }
      passOn();
    },
    isIdle: () => idle,
    release: out.release,
  };
}

/** The length of the head of a message: one byte for its type, four for the length of the rest. */
const headLength = 5;

/** Tracks the messages in a stream whose pieces may end within a message. */
function createCursor() {
  /** The incomplete head at the end of the last piece. */
  let head: Buffer = Buffer.alloc(0);
  /** The type of the present message, and how many bytes of its body are missing. */
  let kind = 0;
  let bodyLeft = 0;
  return {
    kind: () => kind,
    isAtEnd: () => bodyLeft === 0,
    /** The piece, with the incomplete head of the last one before it. */
    join(piece: Buffer): Buffer {
      const data = head.length > 0 ? Buffer.concat([head, piece]) : piece;
      head = Buffer.alloc(0);
      return data;
    },
    /** Reads the head of a message. Returns false if it is incomplete, and saves it for the next piece. */
    start(data: Buffer, at: number): boolean {
      if (data.length - at < headLength) {
        head = data.subarray(at);
        return false;
      }
      kind = data[at] ?? 0;
      bodyLeft = data.readInt32BE(at + 1) - 4;
      return true;
    },
    /** Advances to the end of the message or of the data, and returns the offset. */
    advance(data: Buffer, at: number): number {
      const step = Math.min(bodyLeft, data.length - at);
      bodyLeft -= step;
      return at + step;
    },
  };
}

/** The output to the client, which can hold back a ReadyForQuery. */
function createOutput(send: (data: Buffer) => void) {
  let isHeld = false;
  const release = () => {
    if (isHeld) send(readyForQuery);
    isHeld = false;
  };
  return {
    release,
    send(data: Buffer) {
      release();
      send(data);
    },
    /** @param status the status byte of the ReadyForQuery. */
    sayReady(status: Buffer, isIdle: boolean) {
      release();
      if (isIdle) isHeld = true;
      else send(message('Z', status));
    },
  };
}

/** The body of a notification: a process id of four bytes, the channel and the payload, each followed by a zero byte. */
function notificationIn(body: Buffer): [channel: string, payload: string] {
  const [channel = '', payload = ''] = body.toString('utf8', 4).split('\0');
  return [channel, payload];
}
