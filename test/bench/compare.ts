/** The comparison: runs every contestant with every workload. The contestants take turns in each round. */

import type { Contestant } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import type { LoadGenerator, Measurement } from './load.ts';
import { processorTime, type ServerProcess, startServer } from './processes.ts';
import { verify } from './verify.ts';
import type { Endpoint, Workload } from './workloads.ts';

export interface Settings {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUp: number;
  readonly connections: number;
  /** The number of different requests that a round repeats, on all connections together. */
  readonly requests: number;
}

export interface Result extends Measurement {
  readonly contestant: string;
  readonly title: string;
  readonly endpoint: Endpoint;
  /**
   * Processor time of the contestant's process for one request, in microseconds, without that of PostgreSQL. Unlike all other
   * figures, it hardly depends on the load of the machine.
   */
  readonly processorTime?: number;
  /** Requests a second of this contestant divided by those of Dovetail with the same API, if that was measured. */
  readonly ratio?: number;
}

export interface Comparison {
  readonly workloads: readonly {
    readonly title: string;
    readonly results: readonly Result[];
  }[];
}

interface Options {
  contestants: readonly Contestant[];
  workloads: readonly Workload[];
  database: BenchDatabase;
  generator: LoadGenerator;
  env: Readonly<Record<string, string>>;
  settings: Settings;
  progress(text: string): void;
}

interface Round extends Measurement {
  /** Processor time of the contestant's process, in microseconds. */
  readonly used: number | undefined;
}

interface Running extends Contestant {
  readonly server: ServerProcess;
  readonly url: string;
}

export async function compare(options: Options): Promise<Comparison> {
  const { contestants, workloads, database, generator, env, settings, progress } = options;
  const running: Running[] = [];
  try {
    for (const contestant of contestants) {
      const server = await startServer({
        ...contestant.command,
        env: { ...env, ...contestant.command.env },
      });
      running.push({ ...contestant, server, url: server.url });
    }
    const measured: Comparison['workloads'][number][] = [];
    for (const workload of workloads) {
      const able = running.filter(({ endpoint }) => !(workload.isGraphqlOnly && endpoint === 'rest'));
      await verify(workload, able, database);
      const rounds = new Map<string, Round[]>(able.map(({ name }) => [name, []]));
      // Round 0 warms up, and is not counted.
      for (let round = 0; round <= settings.rounds; round++) {
        for (const { name, url, endpoint, server } of able) {
          const { connections, requests, seconds, warmUp } = settings;
          const job = { url, endpoint, workload: workload.name, connections, requests };
          if (round > 0) {
            const before = await processorTime(server.pid);
            const measurement = await generator.run({ ...job, seconds });
            const after = await processorTime(server.pid);
            const used = before === undefined || after === undefined ? undefined : after - before;
            rounds.get(name)?.push({ ...measurement, used });
          } else {
            await generator.run({ ...job, seconds: warmUp, readResponses: true });
          }
        }
      }
      progress(`measured: ${workload.title}`);
      measured.push({ title: workload.title, results: summarise(able, rounds) });
    }
    return { workloads: measured };
  } finally {
    await Promise.all(running.map(({ server }) => server.stop()));
  }
}

function summarise(contestants: readonly Running[], rounds: ReadonlyMap<string, readonly Round[]>): Result[] {
  const results = contestants.map(({ name, title, endpoint }) => {
    const measurements = rounds.get(name) ?? [];
    const requests = sum(measurements.map((measurement) => measurement.requests));
    const used = measurements.flatMap((measurement) => measurement.used ?? []);
    return {
      contestant: name,
      title,
      endpoint,
      requests,
      ...(used.length > 0 && { processorTime: sum(used) / requests }),
      requestsPerSecond: median(measurements.map(({ requestsPerSecond }) => requestsPerSecond)),
      p50: median(measurements.map(({ p50 }) => p50)),
      p99: median(measurements.map(({ p99 }) => p99)),
    };
  });
  const speedOf = (endpoint: Endpoint) =>
    results.find(({ contestant }) => contestant === `dovetail-${endpoint}`)?.requestsPerSecond;
  return results.map((result): Result => {
    const same = speedOf(result.endpoint);
    return {
      ...result,
      ...(same !== undefined && { ratio: result.requestsPerSecond / same }),
    };
  });
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
