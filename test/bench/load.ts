/**
 * The load generator: autocannon in a process of its own. The process receives jobs as messages from its parent, and replies to
 * each with the measurement.
 */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { seeded } from '../support/random.ts';
import { serveJobs, type Worker, workerOf } from './processes.ts';
import { type BenchRequest, type Endpoint, pickSubject, requestOf, workloadNamed } from './workloads.ts';

export interface Job {
  readonly url: string;
  readonly workload: string;
  readonly endpoint: Endpoint;
  readonly seconds: number;
  readonly connections: number;
  /** The number of different requests, on all connections together. */
  readonly requests: number;
  /** Reads every response and counts errors in it. This takes processor time, so it is used only for warming up. */
  readonly readResponses?: boolean;
  /** The request itself, if it is not one of a workload. */
  readonly request?: BenchRequest;
  /** The expected status of the responses, if it is not 2xx. */
  readonly status?: number;
}

export interface Measurement {
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

/** A job fails if a response was not as expected. */
export type LoadGenerator = Worker<Job, Measurement>;

export const startLoadGenerator = (): LoadGenerator =>
  workerOf(fork(fileURLToPath(import.meta.url), { execArgv: [] }));

async function run(job: Job): Promise<Measurement> {
  const random = seeded(1);
  const latencies: number[] = [];
  const sent = performance.now();
  let first = 0;
  let last = 0;
  const options: autocannon.Options = {
    url: job.url,
    connections: job.connections,
    duration: job.seconds,
    sampleInt: 50,
    timeout: 30,
    // Every connection has its own requests, since the server may share the work of equal concurrent requests.
    setupClient: (client) => client.setRequests(makeRequests(job, random)),
    ...(job.readResponses && { verifyBody: (body) => !String(body).includes('"errors":') }),
  };
  const result = await new Promise<autocannon.Result>((settle, fail) => {
    const instance = autocannon(options, (error, measured) => (error ? fail(error) : settle(measured)));
    // autocannon's own histogram has a resolution of a millisecond, which is too coarse here.
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      first ||= last;
      latencies.push(milliseconds);
    });
  });
  const isExpected = (code: string) =>
    job.status === undefined ? code.startsWith('2') : code === String(job.status);
  const unexpected = Object.entries(result.statusCodeStats ?? {})
    .filter(([code]) => !isExpected(code))
    .reduce((total, [, { count = 0 }]) => total + count, 0);
  const wrong = result.errors + result.timeouts + result.mismatches + unexpected;
  if (wrong > 0)
    throw new Error(
      `${job.workload} at ${job.endpoint}: ${wrong} of ${latencies.length} responses were errors`,
    );
  if (latencies.length < 2) throw new Error(`only ${latencies.length} responses in ${last - sent} ms`);
  latencies.sort((one, other) => one - other);
  const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    requests: latencies.length,
    requestsPerSecond: ((latencies.length - 1) / (last - first)) * 1000,
    p50: quantile(0.5),
    p99: quantile(0.99),
  };
}

function makeRequests(job: Job, random: () => number): autocannon.Request[] {
  const { workload: name, endpoint, request } = job;
  return Array.from({ length: Math.ceil(job.requests / job.connections) }, () => ({
    ...(request ?? requestOf(workloadNamed(name), endpoint, pickSubject(random))),
  }));
}

serveJobs(import.meta.url, run);
