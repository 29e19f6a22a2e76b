/**
 * `--overload`: measures a gateway under more load than it can handle. The load generator has a core of its own; the gateway and
 * PostgreSQL have all others.
 */

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { bare, dovetail } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import { type OpenLoop, type Stream, type StreamResult, startOpenLoop } from './openLoop.ts';
import { processorTime, type ServerProcess, startServer } from './processes.ts';
import type { Table } from './table.ts';
import {
  type BenchRequest,
  type Endpoint,
  pickSubject,
  requestOf,
  seeded,
  type Workload,
  workloads,
} from './workloads.ts';

interface Options {
  database: BenchDatabase;
  env: Readonly<Record<string, string>>;
  /** The name of the only workload to measure, if not all. */
  workload: string | undefined;
  seconds: number;
  progress(text: string): void;
}

const clients = 1_000;
const closedLoop = 32;
/** In seconds: the time at the start of each run that is not counted. */
const uncounted = 1;
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

export async function measureOverload(options: Options, prefix: readonly string[]): Promise<Table[]> {
  const { env, workload, progress } = options;
  const generator = startOpenLoop(prefix);
  try {
    const tables = [await measureGenerator(generator, prefix.length > 0)];
    const command = dovetail();
    const server = await startServer({ ...command, env: { ...env, ...command.env } });
    try {
      for (const [name, endpoint] of [
        ['sessions', 'rest'],
        ['sessions', 'graphql'],
        ['session', 'rest'],
      ] as const) {
        const asked = workloads.find((each) => each.name === name);
        if (!asked || (workload !== undefined && !workload.split(',').includes(`${name}-${endpoint}`)))
          continue;
        const { table, sustainable } = await measureSteps(options, { generator, server, asked, endpoint });
        tables.push(table);
        if (tables.length === 2)
          tables.push(await measureFairness(options, { generator, server, asked, endpoint }, sustainable));
        progress(`measured: ${asked.title}, ${endpoint}`);
      }
    } finally {
      await server.stop();
    }
    return tables;
  } finally {
    await generator.stop();
  }
}

/** Measures how much the generator can send, with a server that does nothing. */
async function measureGenerator(generator: OpenLoop, isPinned: boolean): Promise<Table> {
  const response = { status: 503, headers: { 'content-length': '2' }, body: '{}' };
  const server = await startServer({
    ...bare(),
    env: { BARE_RESPONSE: JSON.stringify(response) },
  });
  try {
    const requests = requestsOf('session', 'rest', clients);
    const run = (pace: Stream['pace']) =>
      runOne(generator, server, { warmUp: 1, seconds: 2 }, { name: 'bare', pace, requests });
    const closed = await run({ connections: 128 });
    const open = await run({ rate: closed.sentPerSecond * 0.9 });
    return {
      title: `The generator${isPinned ? ', on a core of its own' : ', which shares the cores'}`,
      rows: [
        ['', 'requests/s', 'sent late by, p99 ms', 'response after, p99 ms'],
        ['bare node:http, closed loop', thousands(closed.sentPerSecond), '', ms(closed.rejectedP99)],
        [
          'bare node:http, by the clock',
          thousands(open.sentPerSecond),
          ms(open.lateP99),
          ms(open.rejectedP99),
        ],
      ],
    };
  } finally {
    await server.stop();
  }
}

interface Target {
  readonly generator: OpenLoop;
  readonly server: ServerProcess;
  readonly asked: Workload;
  readonly endpoint: Endpoint;
}

/** Measures one, two, four and eight times the sustainable load. */
async function measureSteps({ seconds }: Options, { generator, server, asked, endpoint }: Target) {
  const requests = requestsOf(asked.name, endpoint, clients);
  const run = (pace: Stream['pace'], time = seconds) =>
    runOne(generator, server, { warmUp: uncounted, seconds: time }, { name: asked.name, pace, requests });
  const { acceptedPerSecond: most } = await run({ connections: closedLoop });
  const sustainable = most * (await sustainableShare((share) => run({ rate: most * share }, 2)));
  const rows = [
    [
      '',
      'requests/s',
      'accepted/s',
      'of 1×',
      'p50 ms',
      'p99 ms',
      'of 1×',
      '503s',
      'their p99 ms',
      'CPU µs',
      'others',
      'sent late, p99 ms',
    ],
  ];
  let first: StreamResult | undefined;
  /** Processor time of the gateway for an accepted request, in microseconds, at a load at which none is rejected. */
  let usual = 0;
  for (const factor of [1, 2, 4, 8]) {
    const before = (await processorTime(server.pid)) ?? Number.NaN;
    const result = await run({ rate: sustainable * factor });
    // The uncounted seconds at the start had the same load.
    const used = (((await processorTime(server.pid)) ?? Number.NaN) - before) / (seconds + uncounted);
    first ??= result;
    usual ||= used / result.acceptedPerSecond;
    const rest = (used - usual * result.acceptedPerSecond) / (result.rejected / seconds);
    rows.push([
      `${factor}×`,
      thousands(result.sentPerSecond),
      thousands(result.acceptedPerSecond),
      (result.acceptedPerSecond / first.acceptedPerSecond).toFixed(2),
      ms(result.p50),
      ms(result.p99),
      (result.p99 / first.p99).toFixed(2),
      thousands(result.rejected / seconds),
      ms(result.rejectedP99),
      result.rejected > 0 ? rest.toFixed(0) : '',
      String(result.others),
      ms(result.lateP99),
    ]);
  }
  const closed = `${closedLoop} clients that wait for their responses get ${thousands(most)}/s`;
  return { sustainable, table: { title: `${asked.title}, ${endpoint} (${closed})`, rows } };
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
  { seconds }: Options,
  { generator, server, asked, endpoint }: Target,
  sustainable: number,
): Promise<Table> {
  const normal = 20;
  const all = requestsOf(asked.name, endpoint, normal + 1);
  const others = { name: 'twenty others', pace: { rate: sustainable / 4 }, requests: all.slice(1) };
  const flood = { name: 'one that floods', pace: { rate: sustainable * 8 }, requests: all.slice(0, 1) };
  const rows = [['', 'requests/s', 'accepted/s', 'p50 ms', 'p99 ms', '503s', 'their p99 ms', 'others']];
  for (const [title, streams] of [
    ['without', [others]],
    ['with', [others, flood]],
  ] as const)
    for (const result of await generator.run({ url: server.url, warmUp: 1, seconds, streams }))
      rows.push([
        streams.length === 1 ? result.name : `${result.name}, ${title} the flood`,
        thousands(result.sentPerSecond),
        thousands(result.acceptedPerSecond),
        ms(result.p50),
        ms(result.p99),
        String(result.rejected),
        ms(result.rejectedP99),
        String(result.others),
      ]);
  return { title: `Fairness: ${asked.title}, ${endpoint}`, rows };
}

/** The requests of the workload, one for each user. */
function requestsOf(name: string, endpoint: Endpoint, users: number): BenchRequest[] {
  const workload = workloads.find((each) => each.name === name);
  if (!workload) throw new Error(`there is no workload ${name}`);
  const random = seeded(1);
  return Array.from({ length: users }, (_, index) => {
    const { session, template, user } = pickSubject(random);
    // Each user requests the corresponding records of their own.
    const shift = index + 1 - user;
    return requestOf(workload, endpoint, {
      user: index + 1,
      session: session + shift,
      template: template + shift,
    });
  });
}

async function runOne(
  generator: OpenLoop,
  { url }: ServerProcess,
  times: { warmUp: number; seconds: number },
  stream: Stream,
): Promise<StreamResult> {
  const [result] = await generator.run({ url, ...times, streams: [stream] });
  if (!result) throw new Error('nothing was measured');
  return result;
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function ms(value: number): string {
  return value.toFixed(1);
}
