/**
 * The load generator, a process of its own. Its connections send one request after the other; or requests are due at fixed times,
 * whether or not earlier ones have been responded to, and each is timed from when it was due, so that a slow server does not slow down
 * the measurement (coordinated omission). It uses sockets directly, since it has to send more than the gateway can handle with one core.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { BenchRequest } from './workloads.ts';

/** A part of the load, on connections of its own. */
export interface Stream {
  readonly name: string;
  /** A rate in requests a second, or a number of connections that each send one request after the other. */
  readonly pace: { readonly rate: number } | { readonly connections: number };
  /** For each client the requests that it sends in turn. A connection belongs to one client. */
  readonly requests: readonly (readonly BenchRequest[])[];
}

interface Job {
  readonly url: string;
  readonly seconds: number;
  /** In seconds: the time at the start that is not counted. */
  readonly warmUp: number;
  /** The status of an accepted request; by default 200. */
  readonly status?: number;
  readonly streams: readonly Stream[];
}

/** Times in milliseconds, from when a request was due to the last byte of its response. */
export interface StreamResult {
  readonly name: string;
  /** All responses, also those before and after the time that is counted. */
  readonly responses: number;
  readonly sentPerSecond: number;
  readonly acceptedPerSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly rejected: number;
  /** The number of responses with another status or with errors, and of broken connections. */
  readonly others: number;
  /** The p99 of how much later than due requests were sent: the error that the generator adds to the times. */
  readonly lateP99: number;
}

export type LoadGenerator = ReturnType<typeof startLoadGenerator>;

/** @param prefix the command that pins the process to a core, or nothing. */
export function startLoadGenerator(prefix: readonly string[]) {
  const node = process.execPath;
  const [program = node, ...args] = [...prefix, node, fileURLToPath(import.meta.url)];
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  return {
    /** @throws what the job has failed with. */
    async run(job: Job): Promise<readonly StreamResult[]> {
      child.send(job);
      const [reply] = (await once(child, 'message')) as [readonly StreamResult[] | string];
      if (typeof reply === 'string') throw new Error(reply);
      return reply;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

interface Connection {
  /** @param due the time from which the request is timed. */
  ask(due: number): void;
  close(): void;
}

/** A connection that sends one request at a time, with as little work as possible. */
async function openConnection(
  url: URL,
  requests: readonly BenchRequest[],
  ended: (connection: Connection, status: number, due: number) => void,
): Promise<Connection> {
  const texts = requests.map(({ method, path, headers, body = '' }) => {
    const lines = Object.entries({ Host: url.host, ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}${length}\r\n${body}`);
  });
  const socket = connect(Number(url.port), url.hostname);
  await once(socket, 'connect');
  socket.setNoDelay(true);
  let due: number | undefined;
  let sent = 0;
  let status = 0;
  /** The remaining bytes of the response; undefined before its headers. */
  let missing: number | undefined;
  const end = (outcome: number) => {
    if (due === undefined) return;
    const since = due;
    due = undefined;
    missing = undefined;
    ended(connection, outcome, since);
  };
  socket.on('data', (data: Buffer) => {
    if (missing === undefined) {
      // The headers arrive in one piece, since they are short and written at once.
      const endOfHead = data.indexOf('\r\n\r\n');
      // With the beginning of the body, in which GraphQL has its errors, or no data because of them.
      const head = data.toString('latin1', 0, endOfHead + 20);
      status = /\r\n\r\n\{"(errors"|data":null)/.test(head) ? 0 : Number(head.slice(9, 12));
      missing = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1]) + endOfHead + 4;
    }
    missing -= data.length;
    if (!(missing > 0)) end(status);
  });
  socket.on('error', () => {});
  socket.on('close', () => end(0));
  const connection = {
    ask(at: number) {
      due = at;
      if (socket.destroyed) end(0);
      else socket.write(texts[sent++ % texts.length] ?? '');
    },
    close: () => socket.destroy(),
  };
  return connection;
}

/** In seconds: how long responses may take before the generator has no free connection; and the maximum. */
const reserve = 0.2;
const mostConnections = 2_000;

/** In milliseconds: how long the generator waits for the last responses. */
const longestEnd = 20_000;

function countOf({ pace }: Stream): number {
  return 'connections' in pace
    ? pace.connections
    : Math.min(Math.max(Math.ceil(pace.rate * reserve), 64), mostConnections);
}

/** Opens the connections of a stream. @returns a function that runs it. */
async function prepare({ url, status: right = 200 }: Job, { name, pace, requests }: Stream) {
  const accepted: number[] = [];
  const late: number[] = [];
  const samples = { responses: 0, accepted, rejected: 0, late, others: 0 };
  const free: Connection[] = [];
  let from = 0;
  let until = 0;
  const ended = (connection: Connection, status: number, due: number) => {
    const now = performance.now();
    samples.responses++;
    // What is due at fixed times counts even if it is late. Otherwise the requests at the end would count too often.
    const counted = 'connections' in pace ? now : due;
    if (counted >= from && counted < until) {
      if (status === right) samples.accepted.push(now - due);
      else if (status === 503) samples.rejected++;
      else samples.others++;
    }
    if ('connections' in pace && now < until && status !== 0) connection.ask(now);
    else free.push(connection);
  };
  while (free.length < countOf({ name, pace, requests })) {
    const its = requests[free.length % requests.length];
    if (!its) throw new Error(`${name} has no requests`);
    free.push(await openConnection(new URL(url), its, ended));
  }
  const all = [...free];
  return {
    name,
    samples,
    close() {
      for (const connection of all) connection.close();
    },
    async run(warmUp: number, seconds: number) {
      const began = performance.now();
      from = began + warmUp * 1_000;
      until = from + seconds * 1_000;
      if ('connections' in pace) for (const connection of free.splice(0)) connection.ask(began);
      for (let sent = 0; performance.now() < until; await sleep(1)) {
        if ('connections' in pace) continue;
        const now = performance.now();
        const due = Math.floor(((now - began) * pace.rate) / 1_000);
        // The connection that was idle longest is used first, so that all clients take turns.
        for (const connection of free.splice(0, due - sent)) {
          const at = began + (sent++ * 1_000) / pace.rate;
          if (at >= from) samples.late.push(now - at);
          connection.ask(at);
        }
      }
      const end = performance.now() + longestEnd;
      while (free.length < all.length && performance.now() < end) await sleep(10);
      samples.others += all.length - free.length;
    },
  };
}

async function run(job: Job): Promise<StreamResult[]> {
  const { streams, warmUp, seconds } = job;
  const prepared = [];
  for (const stream of streams) prepared.push(await prepare(job, stream));
  await Promise.all(prepared.map((stream) => stream.run(warmUp, seconds)));
  return prepared.map(({ name, samples: { responses, accepted, rejected, late, others }, close }) => {
    close();
    return {
      name,
      responses,
      sentPerSecond: (accepted.length + rejected + others) / seconds,
      acceptedPerSecond: accepted.length / seconds,
      p50: quantile(accepted, 0.5),
      p99: quantile(accepted, 0.99),
      rejected,
      others,
      lateP99: quantile(late, 0.99),
    };
  });
}

function quantile(times: number[], share: number): number {
  return times.sort((one, other) => one - other)[Math.floor(times.length * share)] ?? Number.NaN;
}

// As the process of its own, it serves jobs.
if (process.send && process.argv[1] === fileURLToPath(import.meta.url))
  process.on('message', (job: Job) => {
    run(job).then(
      (result) => process.send?.(result),
      (error: Error) => process.send?.(error.message),
    );
  });
