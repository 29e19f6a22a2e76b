/** Reads what the engine replies on its way to the client whose turn it is. */

import { message, type } from './protocol.ts';

/**
 * Told of what `NOTIFY` sends on any channel that the engine listens to. The payload is empty when a guest may have
 * changed anything without announcing it.
 */
export type NotificationListener = (channel: string, payload: string) => void;

export interface ReplyReader {
  read(data: Buffer): void;
  /** Whether the engine's last message said that it is in no transaction and waits for the next command. */
  isIdle(): boolean;
  /** Sends the message that says so, if it was kept back. */
  release(): void;
}

/** These may come at any time, and say nothing about the command at hand: notices, settings, notifications. */
const asides = [type('N'), type('S'), type('A')];

const readyForQuery = message('Z', Buffer.from('I'));

/**
 * Takes notifications out of the engine's replies, and passes the rest on as it comes. Pieces end anywhere, so it
 * keeps to the lengths of messages: data may look like a message that says idle.
 * @param holdsIdle whether the message that says idle is kept back, until `release` or until another message comes.
 */
export function createReplyReader(
  send: (data: Buffer) => void,
  onNotification: NotificationListener,
  holdsIdle: boolean,
): ReplyReader {
  const taken = holdsIdle ? [type('A'), type('Z')] : [type('A')];
  const out = createOutput(send);
  const cursor = createCursor();
  /** What has come of the body of a message that is taken out. */
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
      /** Up to where messages were read, and up to where they were passed on or taken out. */
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

/** A message's head: its type, and the length of all that follows the type. */
const headLength = 5;

/** Follows the messages in a stream whose pieces end anywhere. */
function createCursor() {
  /** The part of a head with which the last piece ended. */
  let head: Buffer = Buffer.alloc(0);
  /** The type of the message at hand, and how much of it is still to come. */
  let kind = 0;
  let bodyLeft = 0;
  return {
    kind: () => kind,
    isAtEnd: () => bodyLeft === 0,
    /** The piece, with what was left of the one before it. */
    join(piece: Buffer): Buffer {
      const data = head.length > 0 ? Buffer.concat([head, piece]) : piece;
      head = Buffer.alloc(0);
      return data;
    },
    /** Begins a message. Gives false if its head is not all there, which is kept for the next piece. */
    start(data: Buffer, at: number): boolean {
      if (data.length - at < headLength) {
        head = data.subarray(at);
        return false;
      }
      kind = data[at] ?? 0;
      bodyLeft = data.readInt32BE(at + 1) - 4;
      return true;
    },
    /** Goes as far as the message or the data does, and says how far that is. */
    advance(data: Buffer, at: number): number {
      const step = Math.min(bodyLeft, data.length - at);
      bodyLeft -= step;
      return at + step;
    },
  };
}

/** What goes to the client, where the message that says idle may have to wait. */
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
    /** @param status says whether the engine is in a transaction. */
    sayReady(status: Buffer, isIdle: boolean) {
      release();
      if (isIdle) isHeld = true;
      else send(message('Z', status));
    },
  };
}

/** A process id of four bytes, then the channel and the payload, each ended by a zero byte. */
function notificationIn(body: Buffer): [channel: string, payload: string] {
  const [channel = '', payload = ''] = body.toString('utf8', 4).split('\0');
  return [channel, payload];
}
