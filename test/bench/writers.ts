/**
 * Clients that write without pause: each is a connection that updates one row after the other, each in a transaction of its own.
 * They implement only the necessary part of the protocol, to leave the processor to the database.
 */

import { Socket } from 'node:net';
import pg from 'pg';

export interface Writers {
  /** All of them write for so many seconds. @returns the number of committed transactions, and the seconds that they took. */
  run(seconds: number): Promise<{ commits: number; seconds: number }>;
  close(): void;
}

const update = 'UPDATE "DttDevice" SET "apiHits" = "apiHits" + 1 WHERE id = $1';
/** The number of rows of each client. Only this client writes to them, so that none waits for a lock. */
const rows = 90;

export async function openWriters(url: string, count: number): Promise<Writers> {
  const writers = await Promise.all(
    Array.from({ length: count }, (_, number) => openWriter(url, number, count)),
  );
  return {
    async run(seconds) {
      const began = performance.now();
      const until = began + seconds * 1_000;
      const commits = await Promise.all(writers.map(({ write }) => write(until)));
      return {
        commits: commits.reduce((sum, each) => sum + each, 0),
        seconds: (performance.now() - began) / 1_000,
      };
    },
    close() {
      for (const { socket } of writers) socket.destroy();
    },
  };
}

async function openWriter(url: string, number: number, count: number) {
  const socket = new Socket();
  const client = new pg.Client({ connectionString: url, stream: () => socket });
  client.on('error', () => {});
  await client.connect();
  await client.query(`PREPARE change(integer) AS ${update}`);
  // After the start-up, this module handles the socket itself.
  socket.removeAllListeners('data');
  const queries = Array.from({ length: rows }, (_, row) =>
    queryOf(`EXECUTE change(${1 + number + row * count})`),
  );
  let done = (_error?: Error) => {};
  socket.on('data', (data: Buffer) => {
    if (data[0] === errorResponse) done(new Error(data.toString('latin1')));
    else if (data.subarray(-readyForQuery.length).equals(readyForQuery)) done();
  });
  socket.on('close', () => done(new Error('the database closed the connection')));
  return {
    socket,
    /** @returns the number of rows that it has changed until this time. */
    write: (until: number) =>
      new Promise<number>((settle, fail) => {
        let commits = -1;
        done = (error) => {
          if (error) return fail(error);
          commits++;
          if (performance.now() >= until) return settle(commits);
          socket.write(queries[commits % rows] ?? '');
        };
        done();
      }),
  };
}

/** The first byte of an error message. */
const errorResponse = 'E'.charCodeAt(0);
/** The end of a response, outside of transactions. */
const readyForQuery = Buffer.from([...Buffer.from('Z'), 0, 0, 0, 5, ...Buffer.from('I')]);

function queryOf(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(text.length + 5);
  return Buffer.concat([Buffer.from('Q'), length, Buffer.from(`${text}\0`)]);
}
