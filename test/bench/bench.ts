/** `npm run bench`: compares Dovetail with the alternatives to it, on the same data in the same run. */

import { cpus } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import { compare, type Settings, type Setup } from './compare.ts';
import { dovetail } from './contestants.ts';
import { startDatabase } from './database.ts';
import { startLoadGenerator } from './load.ts';
import { measureOverload, pinToOtherCores } from './overload.ts';
import { killAll, startServer } from './processes.ts';
import { printTable, type Table } from './table.ts';

const { values: options } = parseArgs({
  options: {
    overload: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string' },
  },
});

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function main(): Promise<void> {
  const settings = {
    rounds: Number(options.rounds),
    seconds: Number(options.seconds ?? (options.overload ? 5 : 3)),
    connections: 32,
  };
  // Done first, since processes that are started later inherit it: none may share a core with the load generator.
  const pinned = options.overload ? pinToOtherCores() : [];

  const began = Date.now();
  const elapsed = () => `${((Date.now() - began) / 1000).toFixed(1)} s`;
  const database = await startDatabase();
  const generator = startLoadGenerator(pinned);
  const env = { DATABASE_URL: database.url, LOG_LEVEL: 'error' };
  try {
    // Dovetail migrates the database when it starts.
    await (await startServer(dovetail(), env)).stop();
    await database.load('data.sql');
    progress(`PostgreSQL is up and has its data: ${elapsed()}`);
    const tables = await measureWhat({ database, generator, env, settings, progress });
    const text = [...tables.map(printTable), conditions(settings, elapsed())].join('\n');
    process.stdout.write(`${text}\n`);
  } finally {
    await generator.stop();
    await database.close();
  }
}

/** Runs the measurement that the options name, or by default the comparison. */
async function measureWhat(setup: Setup): Promise<Table[]> {
  if (options.overload) return measureOverload(setup);
  return compare(setup);
}

/** The conditions of the measurement, which a reader needs to interpret the figures. */
function conditions({ rounds, seconds, connections }: Settings, time: string): string {
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
