/**
 * Clients that write as fast as they get their responses: each a connection that updates one row after the other, each in
 * a transaction of its own. They know no more of the protocol than that, so that the processor is the database's.
 */

import { Socket } from 'node:net';
import pg from 'pg';

export interface Writers {
  /** Has all of them write for so many seconds. Returns how many transactions were committed, and in how many seconds. */
  run(seconds: number): Promise<{ commits: number; seconds: number }>;
  close(): void;
}

const update = 'UPDATE "DttDevice" SET "apiHits" = "apiHits" + 1 WHERE id = $1';
/** Rows of each, which nobody else writes to: nobody waits for another's lock. */
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
  // From here on the socket is this module's.
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
    /** Returns how many rows it changed until then. */
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

/** The first byte of a message that says that something went wrong. */
const errorResponse = 'E'.charCodeAt(0);
/** What a response ends with, outside of transactions. */
const readyForQuery = Buffer.from([...Buffer.from('Z'), 0, 0, 0, 5, ...Buffer.from('I')]);

function queryOf(text: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(text.length + 5);
  return Buffer.concat([Buffer.from('Q'), length, Buffer.from(`${text}\0`)]);
}
