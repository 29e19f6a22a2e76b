/** The other side of `worker.ts`: one slot, for all workers of the process that reads it. */

import type { Worker } from 'node:cluster';
import type pg from 'pg';
import type { HearMessage } from './slot.ts';

/** What a worker asks for. Each time that it begins anew it is another reader. */
export interface FromWorker {
  readonly feed: 'open' | 'close';
  readonly reader: string;
}

/** What a reader is told: the messages, each with its transaction; that all are told from now on; or that none are. */
export interface FromParent {
  readonly reader: string;
  readonly feed: 'opened' | 'messages' | 'lost';
  readonly messages?: readonly (readonly [transaction: string, payload: string])[];
}

/** How many messages may be under way to a worker. One that does not take them has to begin anew. */
const mostUnderway = 100_000;

/** Somebody in a worker who is told of messages. */
interface Reader {
  readonly worker: Worker;
  readonly id: string;
  underway: number;
}

type Messages = NonNullable<FromParent['messages']>;

export interface Sharing {
  /** To be called with each new worker. */
  serve(worker: Worker): void;
}

/** Reads messages for workers, while any of them asks for it. */
export function shareMessages(direct: pg.ClientConfig): Sharing {
  const readers = new Map<string, Reader>();
  let reading: { readonly lost: AbortController; readonly opened: Promise<void> } | undefined;

  function open(): NonNullable<typeof reading> {
    const lost = new AbortController();
    lost.signal.addEventListener('abort', () => {
      reading = undefined;
      for (const reader of readers.values()) drop(reader);
    });
    const opened = import('./slot.ts').then(({ readMessages }) => readMessages(direct, hear, lost));
    opened.catch(() => lost.abort());
    return { lost, opened };
  }

  const hear = inBatches((messages) => {
    for (const reader of readers.values()) if (!handOn(reader, messages)) drop(reader);
  });

  function drop(reader: Reader): void {
    send(reader, { feed: 'lost' });
    remove([reader.id]);
  }

  function remove(ids: readonly string[]): void {
    for (const id of ids) readers.delete(id);
    if (readers.size === 0) reading?.lost.abort();
  }

  async function add(reader: Reader): Promise<void> {
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

/** Those that come together are handed on together. */
function inBatches(handOn: (messages: Messages) => void): HearMessage {
  let waiting: (readonly [string, string])[] = [];
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

/** Gives false when too much is under way already. */
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
