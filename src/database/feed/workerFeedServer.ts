/** Reads messages through one replication slot, and passes them on to all workers of this process (see `workerFeedClient.ts`). */

import type { Worker } from 'node:cluster';
import type pg from 'pg';
import { abortReason } from '../waiting.ts';
import { heartbeat } from './heartbeats.ts';
import type { HearMessage } from './slot.ts';

/** What a worker asks for. Each time it reconnects, it is a new reader. */
export interface FromWorker {
  readonly feed: 'open' | 'close';
  readonly reader: string;
}

/** What a reader is sent: messages, each with its transaction; that it gets all messages from now on; or that it gets no more. */
export interface FromParent {
  readonly reader: string;
  readonly feed: 'opened' | 'messages' | 'lost';
  readonly messages?: readonly (readonly [transaction: number, payload: string])[];
  /** Why it gets no more, if that is known. */
  readonly why?: string;
}

/** How many messages may be in flight to a worker. A worker that does not read them has to reconnect. */
const mostUnderway = 100_000;
const tooSlow = 'this process does not read the messages fast enough';

/**
 * After how many milliseconds without a message the log is read anew for a worker that joins. Every worker receives the heartbeats
 * of all, so silence means that the reader has failed. Workers notice that and reconnect at different moments; without this
 * limit there would always be one that still shares the failed reader with those that join.
 */
const longestSilence = 2 * heartbeat;

/** The reading of messages for all workers. */
interface Reading {
  readonly lost: AbortController;
  readonly opened: Promise<void>;
  /** When the last message arrived, or when reading began; undefined until it has begun, which waits for writing transactions. */
  heardAt: number | undefined;
}

/** A reader of messages in a worker. */
interface Reader {
  readonly worker: Worker;
  readonly id: string;
  underway: number;
}

type Messages = NonNullable<FromParent['messages']>;

export interface Sharing {
  /** Must be called with each new worker. */
  serve(worker: Worker): void;
}

/** Reads messages for workers, while any of them asks for it. */
export function shareMessages(direct: pg.ClientConfig): Sharing {
  const readers = new Map<string, Reader>();
  let reading: Reading | undefined;

  function open(): Reading {
    const lost = new AbortController();
    lost.signal.addEventListener('abort', () => {
      reading = undefined;
      for (const reader of readers.values()) drop(reader, abortReason(lost.signal));
    });
    const noteHeard = () => {
      begun.heardAt = performance.now();
    };
    const hear: HearMessage = (...message) => {
      noteHeard();
      handOnLater(...message);
    };
    const opened = import('./slot.ts').then(({ readMessages }) => readMessages(direct, hear, lost));
    opened.then(noteHeard, (error: unknown) => lost.abort(error));
    const begun: Reading = { lost, opened, heardAt: undefined };
    return begun;
  }

  const handOnLater = batchMessages((messages) => {
    for (const reader of readers.values()) if (!handOn(reader, messages)) drop(reader, tooSlow);
  });

  function drop(reader: Reader, why?: string): void {
    send(reader, { feed: 'lost', ...(why !== undefined && { why }) });
    remove([reader.id]);
  }

  function remove(ids: readonly string[]): void {
    for (const id of ids) readers.delete(id);
    if (readers.size === 0) reading?.lost.abort();
  }

  async function add(reader: Reader): Promise<void> {
    const heardAt = reading?.heardAt;
    if (heardAt !== undefined && performance.now() - heardAt > longestSilence) reading?.lost.abort();
    readers.set(reader.id, reader);
    reading ??= open();
    await reading.opened;
    if (readers.has(reader.id)) send(reader, { feed: 'opened' });
  }

  return {
    serve(worker) {
      worker.on('message', ({ feed, reader: id }: Partial<FromWorker>) => {
        if (id === undefined) return;
        if (feed === 'open') add({ worker, id, underway: 0 }).catch(() => {});
        else remove([id]);
      });
      worker.once('exit', () => {
        const own = [...readers.values()].filter((reader) => reader.worker === worker);
        remove(own.map(({ id }) => id));
      });
    },
  };
}

/** Collects the messages that arrive in one turn of the event loop, and passes them on together. */
function batchMessages(handOn: (messages: Messages) => void): HearMessage {
  let waiting: (readonly [number, string])[] = [];
  return (transaction, payload) => {
    if (waiting.length === 0) {
      setImmediate(() => {
        const messages = waiting;
        waiting = [];
        handOn(messages);
      });
    }
    waiting.push([transaction, payload]);
  };
}

/** Sends messages to a reader. Returns false if too many are in flight. */
function handOn(reader: Reader, messages: Messages): boolean {
  reader.underway += messages.length;
  if (reader.underway > mostUnderway) return false;
  send(reader, { feed: 'messages', messages }, () => {
    reader.underway -= messages.length;
  });
  return true;
}

function send({ worker, id }: Reader, message: Omit<FromParent, 'reader'>, onSent = () => {}): void {
  if (worker.isConnected()) worker.send({ ...message, reader: id }, undefined, onSent);
}
