/** The comparison: runs every contestant with every workload. The contestants take turns in each round. */

import { seeded } from '../support/random.ts';
import { listContestants, type Running } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import type { LoadGenerator } from './load.ts';
import { processorTime, type ServerProcess, startServer } from './processes.ts';
import { figure, type Table } from './table.ts';
import { verify } from './verify.ts';
import { type BenchRequest, type Endpoint, pickSubject, requestOf, workloads } from './workloads.ts';

export interface Settings {
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number;
}

/** In seconds. */
const warmUp = 2;

/** The number of different requests that a round repeats, on all connections together. */
const differentRequests = 4_800;

export interface Setup {
  readonly database: BenchDatabase;
  readonly generator: LoadGenerator;
  readonly env: Readonly<Record<string, string>>;
  readonly settings: Settings;
  progress(text: string): void;
}

interface Round {
  readonly requestsPerSecond: number;
  /**
   * Processor time of the server for one request, in microseconds, without that of PostgreSQL. Unlike all other figures, it hardly
   * depends on the load of the machine.
   */
  readonly used: number;
}

export async function compare({ database, generator, env, settings, progress }: Setup): Promise<Table[]> {
  const running: Running[] = [];
  try {
    for (const contestant of listContestants())
      running.push({ ...contestant, server: await startServer(contestant.command, env) });
    const tables: Table[] = [];
    for (const workload of workloads) {
      const able = running.filter(({ endpoint }) => !(workload.isGraphqlOnly && endpoint === 'rest'));
      await verify(workload, able, database);
      const jobs = able.map(({ endpoint, server }): Job => {
        const random = seeded(1);
        const each = Math.ceil(differentRequests / settings.connections);
        // Every connection has its own requests, since the server may share the work of equal concurrent requests.
        const requests = Array.from({ length: settings.connections }, () =>
          Array.from({ length: each }, () => requestOf(workload, endpoint, pickSubject(random))),
        );
        return { server, requests };
      });
      const rounds = await measureRounds(generator, settings, jobs);
      progress(`measured: ${workload.title}`);
      tables.push({ title: workload.title, rows: rowsOf(able, rounds) });
    }
    return tables;
  } finally {
    await Promise.all(running.map(({ server }) => server.stop()));
  }
}

interface Job {
  readonly server: ServerProcess;
  /** For each connection the requests that it sends in turn. */
  readonly requests: readonly (readonly BenchRequest[])[];
  readonly status?: number;
}

/** Measures the servers in turn, so many times. @returns the rounds of each. */
async function measureRounds(generator: LoadGenerator, settings: Settings, jobs: readonly Job[]) {
  const measured = jobs.map((): Round[] => []);
  // Round 0 warms up, and is not counted.
  for (let round = 0; round <= settings.rounds; round++)
    for (const [index, job] of jobs.entries()) {
      const made = await measure(generator, job, round > 0 ? settings.seconds : warmUp);
      if (round > 0) measured[index]?.push(made);
    }
  return measured;
}

/** In seconds: how long a run lasts before its requests are counted, so that all connections are busy by then. */
const uncounted = 0.2;

/** Sends requests to a server, and measures the processor time that it takes meanwhile. @throws if a response is not as expected. */
async function measure(generator: LoadGenerator, job: Job, seconds: number): Promise<Round> {
  const { requests, server, status = 200 } = job;
  const { url, pid } = server;
  const before = await processorTime(pid);
  const streams = [{ name: url, pace: { connections: requests.length }, requests }];
  const [result] = await generator.run({ status, seconds, url, warmUp: uncounted, streams });
  const used = (await processorTime(pid)) - before;
  const { acceptedPerSecond = 0, rejected = 0, responses = 0 } = result ?? {};
  const wrong = rejected + (result?.others ?? 0);
  if (responses === 0 || wrong > 0)
    throw new Error(`${wrong} of ${responses} responses of ${url} to ${requests[0]?.[0]?.path} were errors`);
  return { requestsPerSecond: acceptedPerSecond, used: used / responses };
}

const medianOf = (rounds: readonly Round[], key: keyof Round): number =>
  median(rounds.map((round) => round[key]));

/** The figures of each contestant; the last column is its speed divided by that of Dovetail with the same API. */
function rowsOf(running: readonly Running[], rounds: readonly Round[][]): string[][] {
  /** Dovetail is the first with each API. */
  const speeds = new Map<Endpoint, number>();
  const rows = running.map(({ title, endpoint }, index) => {
    const measured = rounds[index] ?? [];
    const speed = medianOf(measured, 'requestsPerSecond');
    const own = speeds.get(endpoint) ?? speed;
    speeds.set(endpoint, own);
    const ratio = speed / own;
    return [title, figure(speed), figure(medianOf(measured, 'used')), figure(ratio, 2)];
  });
  return [['', 'requests/s', 'CPU µs', 'to Dovetail'], ...rows];
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}
