/**
 * `--overload`: measures a gateway under more load than it can handle. The load generator has a core of its own; the gateway and
 * PostgreSQL have all others.
 */

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { seeded } from '../support/random.ts';
import type { Setup } from './compare.ts';
import { dovetail } from './contestants.ts';
import type { LoadGenerator, Stream, StreamResult } from './load.ts';
import { type ServerProcess, startServer } from './processes.ts';
import { figure, type Table } from './table.ts';
import { type BenchRequest, pickSubject, requestOf, workloadNamed } from './workloads.ts';

const clients = 1_000;
const closedLoop = 32;
/** In seconds: the time at the start of each run that is not counted. */
const warmUp = 1;
const shares = [0.5, 0.6, 0.7, 0.8, 0.9];

/** Excludes this process, and all that it starts, from the core of the generator. @returns the command that pins the generator to it. */
export function pinToOtherCores(): readonly string[] {
  const cores = cpus().length;
  if (cores < 2) return [];
  try {
    execFileSync('taskset', ['-acp', `1-${cores - 1}`, String(process.pid)], { stdio: 'ignore' });
    return ['taskset', '-c', '0'];
  } catch {
    return [];
  }
}

export async function measureOverload({ generator, env, progress, settings }: Setup): Promise<Table[]> {
  const server = await startServer(dovetail(), env);
  try {
    const tables: Table[] = [];
    for (const name of ['sessions', 'session']) {
      const target = { generator, server, name, seconds: settings.seconds };
      const { table, sustainable } = await measureSteps(target);
      if (tables.push(table) === 1) tables.push(await measureFairness(target, sustainable));
      progress(`measured: ${name}`);
    }
    return tables;
  } finally {
    await server.stop();
  }
}

interface Target {
  readonly generator: LoadGenerator;
  readonly server: ServerProcess;
  /** The name of the workload. */
  readonly name: string;
  readonly seconds: number;
}

const head = ['', 'requests/s', 'accepted/s', 'p50 ms', 'p99 ms', '503s', 'others', 'sent late, p99 ms'];

const rowOf = (title: string, result: StreamResult): string[] => [
  title,
  ...[result.sentPerSecond, result.acceptedPerSecond].map((value) => figure(value)),
  ...[result.p50, result.p99].map((value) => figure(value, 1)),
  ...[result.rejected, result.others].map((value) => figure(value)),
  figure(result.lateP99, 1),
];

/** Measures one, two, four and eight times the sustainable load. */
async function measureSteps({ generator, server, name, seconds }: Target) {
  const requests = requestsOf(name, clients);
  const run = async (pace: Stream['pace'], time = seconds): Promise<StreamResult> => {
    const streams = [{ name, pace, requests }];
    const [result] = await generator.run({ url: server.url, warmUp, seconds: time, streams });
    if (!result) throw new Error('nothing was measured');
    return result;
  };
  const { acceptedPerSecond: most } = await run({ connections: closedLoop });
  const sustainable = most * (await sustainableShare((share) => run({ rate: most * share }, 2)));
  const rows = [head];
  for (const factor of [1, 2, 4, 8])
    rows.push(rowOf(`${factor}×`, await run({ rate: sustainable * factor })));
  const closed = `${closedLoop} clients that wait for their responses get ${figure(most)}/s`;
  return { sustainable, table: { title: `${workloadNamed(name).title} (${closed})`, rows } };
}

/** The highest share at which no request is rejected, and the p99 is at most three times that at half the load. */
async function sustainableShare(run: (share: number) => Promise<StreamResult>): Promise<number> {
  let best = shares[0] ?? 0;
  let usual: number | undefined;
  for (const share of shares) {
    const { p99, rejected, others } = await run(share);
    usual ??= p99;
    if (p99 <= 3 * usual && rejected + others === 0) best = share;
  }
  return best;
}

/** Measures twenty clients with a normal rate, without and with one that floods the gateway. */
async function measureFairness(
  { generator, server, name, seconds }: Target,
  sustainable: number,
): Promise<Table> {
  const [flooding, ...normal] = requestsOf(name, 21);
  if (!flooding) throw new Error('there are no requests');
  const others = { name: 'twenty others', pace: { rate: sustainable / 4 }, requests: normal };
  const flood = { name: 'one that floods', pace: { rate: sustainable * 8 }, requests: [flooding] };
  const rows = [head];
  for (const streams of [[others], [others, flood]])
    for (const result of await generator.run({ url: server.url, warmUp, seconds, streams }))
      rows.push(rowOf(streams.length === 1 ? `${result.name}, alone` : result.name, result));
  return { title: `Fairness: ${workloadNamed(name).title}`, rows };
}

/** The requests of the workload by REST, one for each user. */
function requestsOf(name: string, users: number): BenchRequest[][] {
  const random = seeded(1);
  return Array.from({ length: users }, (_, index) => {
    const { session, template, user } = pickSubject(random);
    // Each user requests the corresponding records of their own.
    const shift = index + 1 - user;
    const subject = { user: index + 1, session: session + shift, template: template + shift };
    return [requestOf(workloadNamed(name), 'rest', subject)];
  });
}
