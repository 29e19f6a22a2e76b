/** `--profile`: how the processor time of Dovetail's process is distributed over modules and functions, for each workload. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Settings } from './compare.ts';
import { dovetail } from './contestants.ts';
import type { LoadGenerator } from './load.ts';
import { startServer } from './processes.ts';
import type { Table } from './table.ts';
import type { Endpoint, Workload } from './workloads.ts';

interface Options {
  workloads: readonly Workload[];
  generator: LoadGenerator;
  node: string;
  env: Readonly<Record<string, string>>;
  settings: Settings;
  progress(text: string): void;
}

/** The profile that V8 writes. Times are in microseconds. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
  readonly endTime: number;
}

const endpoints: readonly Endpoint[] = ['graphql', 'rest'];
const shownModules = 20;
const shownFunctions = 30;

export async function profile({
  workloads,
  generator,
  node,
  env,
  settings,
  progress,
}: Options): Promise<Table[]> {
  const tables: Table[] = [];
  for (const workload of workloads) {
    for (const endpoint of endpoints) {
      if (endpoint === 'rest' && workload.isGraphqlOnly) continue;
      const folder = await mkdtemp(join(tmpdir(), 'dovetail-profile-'));
      try {
        const nodeOptions = [
          '--import',
          'tsx',
          '--cpu-prof',
          '--cpu-prof-interval=500',
          `--cpu-prof-dir=${folder}`,
        ];
        // Not the bundled program, which does not show the module of a function.
        const command = dovetail({ node, nodeOptions, program: 'src/cli/program.ts' });
        const server = await startServer({ ...command, env: { ...env, ...command.env } });
        const job = { url: server.url, endpoint, workload: workload.name, ...settings };
        await generator.run({ ...job, seconds: settings.warmUp });
        const began = Date.now();
        const { requestsPerSecond } = await generator.run(job);
        const measured = (Date.now() - began) * 1000;
        await server.stop();
        const written = await longestProfile(folder);
        const rate = Math.round(requestsPerSecond).toLocaleString('en');
        tables.push(...summarise(written, measured, `${workload.title}, ${endpoint}: ${rate} requests/s`));
        progress(`profiled: ${workload.title}, ${endpoint}`);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }
  }
  return tables;
}

/** Each thread has written a profile. That with the most processor time is of the thread that handles requests. */
async function longestProfile(folder: string): Promise<CpuProfile> {
  const files = await readdir(folder);
  const profiles = await Promise.all(
    files.map(async (file): Promise<CpuProfile> => JSON.parse(await readFile(join(folder, file), 'utf8'))),
  );
  const [longest] = profiles.sort((one, other) => other.nodes.length - one.nodes.length);
  if (!longest) throw new Error('Node wrote no profile');
  return longest;
}

/** @param measured the time at the end of the profile that counts, in microseconds. The time before it was for warming up. */
function summarise(profile: CpuProfile, measured: number, title: string): Table[] {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const byModule = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let total = 0;
  let now = profile.startTime;
  profile.samples.forEach((id, index) => {
    const delta = profile.timeDeltas[index] ?? 0;
    now += delta;
    const frame = frames.get(id);
    if (!frame || now < profile.endTime - measured || frame.functionName === '(idle)') return;
    const module = moduleOf(frame.url, frame.functionName);
    const place = `${frame.functionName || '(anonymous)'}  ${module}:${frame.lineNumber + 1}`;
    total += delta;
    byModule.set(module, (byModule.get(module) ?? 0) + delta);
    byFunction.set(place, (byFunction.get(place) ?? 0) + delta);
  });
  const rows = (times: ReadonlyMap<string, number>, shown: number) =>
    [...times]
      .sort(([, one], [, other]) => other - one)
      .slice(0, shown)
      .map(([name, time]) => [name, `${((time / total) * 100).toFixed(1)}%`]);
  return [
    { title: `${title}, own time by module`, rows: [['module', 'share'], ...rows(byModule, shownModules)] },
    {
      title: `${title}, own time by function`,
      rows: [['function', 'share'], ...rows(byFunction, shownFunctions)],
    },
  ];
}

/** The package, the file of Dovetail or the part of Node to which a function belongs. */
function moduleOf(url: string, functionName: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : '(native)';
  if (url.startsWith('wasm:')) return 'WASM (Prisma query compiler)';
  const installed = url.lastIndexOf('node_modules/');
  if (installed >= 0) {
    const [scope = '', name = ''] = url.slice(installed + 'node_modules/'.length).split('/');
    return scope.startsWith('@') ? `${scope}/${name}` : scope;
  }
  const own = url.lastIndexOf('/src/');
  return own >= 0 ? `dovetail ${url.slice(own + '/src/'.length)}` : url;
}
