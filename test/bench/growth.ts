/** `--growth`: the speed of Dovetail as a user's data grows, its memory, and how fast it starts. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, type Settings } from './compare.ts';
import { dovetail, root } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import { measureFilters } from './filters.ts';
import type { LoadGenerator, Measurement } from './load.ts';
import { type Command, residentMemory, rest, type ServerProcess, startServer } from './processes.ts';
import { measureStatistics } from './statistics.ts';
import type { Table } from './table.ts';
import { type BenchRequest, type Endpoint, type Json, tokenOf, workloads } from './workloads.ts';

interface Options {
  database: BenchDatabase;
  generator: LoadGenerator;
  node: string;
  env: Readonly<Record<string, string>>;
  settings: Settings;
  quick: boolean;
  /** The folder of another built clone, whose start is measured for comparison. */
  against: string | undefined;
  progress(text: string): void;
}

/** The users of `growth.sql`. */
const growing = [
  { user: 2001, sessions: 100 },
  { user: 2002, sessions: 1_000 },
  { user: 2003, sessions: 10_000 },
  { user: 2004, sessions: 100_000 },
];

const depths = [0, 1_000, 10_000, 90_000];

export async function measureGrowth(options: Options): Promise<Table[]> {
  const { database, node, env, progress } = options;
  await database.load('growth.sql');
  progress('loaded the users with many sessions');
  const command = dovetail({ node });
  const server = await startServer({ ...command, env: { ...env, ...command.env } });
  try {
    return [
      await measureUsers(options, server),
      await measureDepths(options, server),
      await measureManySessions(options, server),
      await measureStatistics(2004, server, options.settings.rounds),
      await measureMemory(options),
      await measureStart(options),
    ];
  } finally {
    await server.stop();
  }
}

/** Measures each workload for users with increasing numbers of sessions, who take turns. */
async function measureUsers(
  { generator, settings, progress }: Options,
  { url }: ServerProcess,
): Promise<Table> {
  const rows: string[][] = [];
  for (const endpoint of ['graphql', 'rest'] as const) {
    for (const workload of workloads) {
      if (workload.isWrite || (endpoint === 'rest' && workload.isGraphqlOnly)) continue;
      const results = await inTurns(settings, growing, ({ user, sessions }, seconds) => {
        const random = (limit: number, seed: number) => (seed * 7_919) % limit;
        const subjects = Array.from({ length: 64 }, (_, seed) => ({
          user,
          session: (user - 2000) * 1_000_000 + 1 + random(sessions, seed),
          template: user + 8000,
        }));
        return generator.run({ ...settings, url, endpoint, workload: workload.name, seconds, subjects });
      });
      rows.push([
        `${workload.title}, ${endpoint}`,
        ...results.map(figure),
        ratio(results[0], results.at(-1)),
      ]);
      progress(`measured: ${workload.title}, ${endpoint}, as a user grows`);
    }
  }
  const head = growing.map(({ sessions }) => sessions.toLocaleString('en'));
  return {
    title:
      'requests/s and p50 ms for a user with so many sessions; the ratio is the time of the last to the first',
    rows: [['', ...head, 'ratio'], ...rows],
  };
}

/** Compares reading the same page by an offset and by the cursor of the record before it. */
async function measureDepths(
  { generator, settings, progress }: Options,
  { url }: ServerProcess,
): Promise<Table> {
  const user = 2004;
  const page = async (endpoint: Endpoint, depth: number, after?: string): Promise<BenchRequest> => {
    const headers = { Authorization: `Bearer ${tokenOf(user)}`, 'Content-Type': 'application/json' };
    if (endpoint === 'rest') return { method: 'GET', path: `/api/v1/dtt/sessions?offset=${depth}`, headers };
    const query = `query Page($after: String, $offset: Int) { dttSessions(after: $after, offset: $offset) {
      nodes { databaseId createdAt segments { databaseId points } } pageInfo { endCursor } } }`;
    const variables = after === undefined ? { offset: depth } : { after };
    return { method: 'POST', path: '/graphql', headers, body: JSON.stringify({ query, variables }) };
  };
  const cursorBefore = async (depth: number): Promise<string | undefined> => {
    if (depth === 0) return undefined;
    const query = `{ dttSessions(first: 1, offset: ${depth - 1}) { pageInfo { endCursor } } }`;
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenOf(user)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    const { data }: Json = await response.json();
    return data.dttSessions.pageInfo.endCursor;
  };
  const ways: { title: string; request(depth: number): Promise<BenchRequest> }[] = [
    { title: 'offset, rest', request: (depth) => page('rest', depth) },
    { title: 'offset, graphql', request: (depth) => page('graphql', depth) },
    { title: 'cursor, graphql', request: async (depth) => page('graphql', depth, await cursorBefore(depth)) },
  ];
  const rows: string[][] = [];
  for (const { title, request } of ways) {
    const requests = await Promise.all(depths.map(request));
    const results = await inTurns(settings, requests, (made, seconds) =>
      // A fixed number of requests one after the other, since a deep page may take seconds.
      generator.run({
        ...settings,
        connections: 1,
        amount: 3,
        seconds,
        url,
        endpoint: 'rest',
        workload: title,
        request: made,
      }),
    );
    rows.push([title, ...results.map(figure), ratio(results[0], results.at(-1))]);
    progress(`measured: ${title}`);
  }
  return {
    title: 'requests/s and p50 ms of a page of 50 sessions behind so many others, of 100,000',
    rows: [['', ...depths.map((depth) => depth.toLocaleString('en')), 'ratio'], ...rows],
  };
}

async function measureManySessions(
  { database, quick, progress }: Options,
  server: ServerProcess,
): Promise<Table> {
  await database.load('filters.sql');
  progress('loaded the user with sessions to filter');
  const table = await measureFilters(server, quick ? 3 : 9);
  progress('measured: filters and orders');
  return table;
}

/** Memory of the gateway's process before the first request, and after each kind of work. */
async function measureMemory({ generator, settings, node, env, progress }: Options): Promise<Table> {
  const rows: string[][] = [];
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-bench-data-'));
  const kinds = [
    { title: 'with a PostgreSQL server', env, isEmbedded: false },
    { title: 'with the embedded one', env: { DATA_DIR: folder, LOG_LEVEL: 'error' }, isEmbedded: true },
  ];
  try {
    for (const kind of kinds) {
      const command = { ...dovetail({ node, cachesResponses: true }), env: kind.env };
      // Creating a data folder takes memory that the process does not release, and that later starts do not need.
      if (kind.isEmbedded) await (await startServer(command)).stop();
      const server = await startServer(command);
      try {
        await sleep(rest);
        const atRest = await residentMemory(server.pid);
        let peak = 0;
        const token = kind.isEmbedded ? tokenIn(server.greeting) : undefined;
        for (const name of ['session', 'sessions', 'linked']) {
          const running = generator.run({
            ...settings,
            url: server.url,
            endpoint: 'graphql',
            workload: name,
            ...(token !== undefined && { request: ownSessions(token) }),
          });
          const timer = setInterval(async () => {
            peak = Math.max(peak, (await residentMemory(server.pid)) ?? 0);
          }, 100);
          await running.finally(() => clearInterval(timer));
        }
        await sleep(rest);
        const afterwards = await residentMemory(server.pid);
        rows.push([kind.title, mebibytes(atRest), mebibytes(peak), mebibytes(afterwards)]);
        progress(`measured: memory ${kind.title}`);
      } finally {
        await server.stop();
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
  const head = ['', 'at rest', 'highest under load', 'after two minutes of rest'];
  return { title: 'memory in RAM, MiB', rows: [head, ...rows] };
}

function ownSessions(token: string): BenchRequest {
  const query = '{ dttSessions { nodes { databaseId createdAt segments { databaseId points } } } }';
  return {
    method: 'POST',
    path: '/graphql',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  };
}

/** The time from the command to the first response with data, for a new data folder and an existing one. */
async function measureStart({ node, quick, against, progress }: Options): Promise<Table> {
  const direct = dovetail({ node, cachesResponses: true });
  // npm starts the first Node in PATH.
  const npm = {
    program: 'npm',
    args: ['start', '--silent'],
    env: { PATH: `${dirname(node)}:${process.env.PATH}` },
  };
  const clones = [{ cwd: root, name: '' }, ...(against ? [{ cwd: against, name: ', the other clone' }] : [])];
  const commands = [
    { title: 'node bin/dovetail.js serve', command: direct },
    { title: 'npm start, which builds first', command: npm },
  ].flatMap(({ title, command }) =>
    clones.map(({ cwd, name }) => ({
      title: title + name,
      command: { ...command, cwd },
      empty: [] as number[],
      existing: [] as number[],
    })),
  );
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    for (const { command, empty, existing } of commands) {
      const folder = await mkdtemp(join(tmpdir(), 'dovetail-bench-data-'));
      try {
        empty.push(await timeToFirstResponse(command, folder));
        existing.push(await timeToFirstResponse(command, folder));
      } finally {
        await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
      }
    }
    progress(`measured: start, round ${round + 1}`);
  }
  const rows = commands.map(({ title, empty, existing }) => [title, seconds(empty), seconds(existing)]);
  return {
    title: 'from the command to the first response with data, embedded PostgreSQL',
    rows: [['', 'new data folder', 'existing one'], ...rows],
  };
}

async function timeToFirstResponse(command: Command, folder: string): Promise<number> {
  const began = performance.now();
  const server = await startServer({ ...command, env: { ...command.env, DATA_DIR: join(folder, 'data') } });
  try {
    const response = await fetch(`${server.url}/api/v1/dtt`, {
      headers: { Authorization: `Bearer ${tokenIn(server.greeting)}` },
    });
    await response.text();
    if (!response.ok) throw new Error(`the first response was ${response.status}: ${server.greeting}`);
    return performance.now() - began;
  } finally {
    await server.stop();
  }
}

/** The token of the demo account, which a gateway with an embedded database prints. */
function tokenIn(greeting: string): string {
  return /dvt_[\w-]{43}/.exec(greeting)?.[0] ?? '';
}

/** Measures the cases in several rounds, in which they take turns, after a round that is not counted. */
async function inTurns<Case>(
  { rounds, seconds, warmUp }: Settings,
  cases: readonly Case[],
  measure: (of: Case, seconds: number) => Promise<Measurement>,
): Promise<Measurement[]> {
  const measured: Measurement[][] = cases.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, of] of cases.entries()) {
      const measurement = await measure(of, round === 0 ? warmUp : seconds);
      if (round > 0) measured[index]?.push(measurement);
    }
  }
  return measured.map((measurements) => ({
    requests: measurements.reduce((sum, { requests }) => sum + requests, 0),
    requestsPerSecond: median(measurements.map(({ requestsPerSecond }) => requestsPerSecond)),
    p50: median(measurements.map(({ p50 }) => p50)),
    p99: median(measurements.map(({ p99 }) => p99)),
  }));
}

function figure({ requestsPerSecond, p50 }: Measurement): string {
  return `${Math.round(requestsPerSecond).toLocaleString('en')}/s ${p50.toFixed(1)}`;
}

/** The ratio of the last to the first. */
function ratio(first: Measurement | undefined, last: Measurement | undefined): string {
  return first && last ? (first.requestsPerSecond / last.requestsPerSecond).toFixed(2) : '-';
}

function mebibytes(size: number | undefined): string {
  return size === undefined ? '-' : Math.round(size).toString();
}

function seconds(times: readonly number[]): string {
  return `${(median(times) / 1000).toFixed(2)} s`;
}
