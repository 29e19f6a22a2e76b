/** `npm run bench`: compares Dovetail with the alternatives to it, on the same data in the same run. */

import { cpus } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import { measureCached } from './cached.ts';
import { compare } from './compare.ts';
import { type Contestant, dovetail, listContestants } from './contestants.ts';
import { startDatabase } from './database.ts';
import { startLoadGenerator } from './load.ts';
import { measureOverload, pinToOtherCores } from './overload.ts';
import { killAll, startServer } from './processes.ts';
import { printTable, type Table } from './table.ts';
import { workloads } from './workloads.ts';

const usage = `npm run bench -- [options]

  --quick            fewer and shorter rounds: under two minutes in all
  --only a,b         only these contestants: ${listContestants()
    .map(({ name }) => name)
    .join(', ')}
  --workload x,y     only these workloads: ${workloads.map(({ name }) => name).join(', ')}
  --cached           measures cached responses against a bare server instead
  --overload         measures the gateway under more load than it can handle instead; takes workloads such as sessions-rest
  --rounds N         rounds of a full run (5)
  --seconds N        length of a round (3)
`;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    workload: { type: 'string' },
    cached: { type: 'boolean', default: false },
    overload: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function main(): Promise<void> {
  if (options.help) return print(usage);
  const settings = {
    rounds: Number(options.rounds ?? (options.quick ? 2 : 5)),
    seconds: Number(options.seconds ?? (options.quick ? 0.8 : 3)),
    warmUp: options.quick ? 0.5 : 2,
    requests: options.quick ? 512 : 4_800,
    connections: 32,
  };
  const contestants = chosen(listContestants(), options.only);
  const asked = chosen(workloads, options.overload ? undefined : options.workload);
  // Done first, since processes that are started later inherit it: none may share a core with the load generator.
  const pinned = options.overload ? pinToOtherCores() : [];

  const began = Date.now();
  const elapsed = () => `${((Date.now() - began) / 1000).toFixed(1)} s`;
  const database = await startDatabase();
  const generator = startLoadGenerator(pinned);
  const env = { DATABASE_URL: database.url, LOG_LEVEL: 'error' };
  try {
    // Dovetail migrates the database when it starts.
    await (await startServer({ ...dovetail(), env })).stop();
    await database.load('data.sql');
    progress(`PostgreSQL is up and has its data: ${elapsed()}`);
    const setup = { database, generator, env, settings, progress };
    for (const table of await measureWhat({ ...setup, contestants, workloads: asked }))
      print(printTable(table));
    print(conditions(settings, elapsed()));
  } finally {
    await generator.stop();
    await database.close();
  }
}

/** Runs the measurement that the options name, or by default the comparison. */
async function measureWhat(setup: Parameters<typeof compare>[0]): Promise<Table[]> {
  if (options.overload) {
    const seconds = Number(options.seconds ?? 5);
    return measureOverload({ ...setup, workload: options.workload, seconds });
  }
  if (options.cached) return [await measureCached(setup)];
  return compare(setup);
}

/** The entries that the option names, in the order of the list; all of them without the option. */
function chosen<T extends Pick<Contestant, 'name'>>(
  all: readonly T[],
  option: string | undefined,
): readonly T[] {
  if (option === undefined) return all;
  const names = option.split(',');
  const unknown = names.filter((name) => !all.some((entry) => entry.name === name));
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}.\n\n${usage}`);
  return all.filter(({ name }) => names.includes(name));
}

/** The conditions of the measurement, which a reader needs to interpret the figures. */
function conditions(
  settings: { rounds: number; seconds: number; connections: number },
  time: string,
): string {
  const { rounds, seconds, connections } = settings;
  return `Medians of ${rounds} rounds of ${seconds} s, ${connections} connections, all on one machine with ${cpus().length} cores
(${cpus()[0]?.model.trim()}), Node ${process.version}. PostgreSQL with fsync off. ${time} in all.`;
}

for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => {
    killAll();
    process.exit(1);
  });
}
try {
  await main();
} catch (error) {
  killAll();
  progress(inspect(error));
  process.exitCode = 1;
}
