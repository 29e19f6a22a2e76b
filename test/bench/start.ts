/** `--start`: the memory of Dovetail, and how fast it starts. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, type Settings } from './compare.ts';
import { dovetail, root } from './contestants.ts';
import type { LoadGenerator } from './load.ts';
import { type Command, residentMemory, rest, startServer } from './processes.ts';
import type { Table } from './table.ts';
import type { BenchRequest } from './workloads.ts';

interface Options {
  generator: LoadGenerator;
  env: Readonly<Record<string, string>>;
  settings: Settings;
  quick: boolean;
  /** The folder of another built clone, whose start is measured for comparison. */
  against: string | undefined;
  progress(text: string): void;
}

export async function measureStartAndMemory(options: Options): Promise<Table[]> {
  return [await measureMemory(options), await measureStart(options)];
}

/** Memory of the gateway's process before the first request, and after each kind of work. */
async function measureMemory({ generator, settings, env, progress }: Options): Promise<Table> {
  const rows: string[][] = [];
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-bench-data-'));
  const kinds = [
    { title: 'with a PostgreSQL server', env, isEmbedded: false },
    { title: 'with the embedded one', env: { DATA_DIR: folder, LOG_LEVEL: 'error' }, isEmbedded: true },
  ];
  try {
    for (const kind of kinds) {
      const command = { ...dovetail({ cachesResponses: true }), env: kind.env };
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
async function measureStart({ quick, against, progress }: Options): Promise<Table> {
  const direct = dovetail({ cachesResponses: true });
  const npm = { program: 'npm', args: ['start', '--silent'] };
  const clones = [{ cwd: root, name: '' }, ...(against ? [{ cwd: against, name: ', the other clone' }] : [])];
  const commands = [
    { title: 'node bin/dovetail.js serve', command: direct },
    { title: 'npm start', command: npm },
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

function mebibytes(size: number | undefined): string {
  return size === undefined ? '-' : Math.round(size).toString();
}

function seconds(times: readonly number[]): string {
  return `${(median(times) / 1000).toFixed(2)} s`;
}
