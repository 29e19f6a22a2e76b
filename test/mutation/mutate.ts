/**
 * Switches faults on in the sources, one after the other, and counts which of them the tests notice. docs/decisions/mutation.md says how.
 *
 *     npm run mutate -- auth --draw 60 --seed anything
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import { inspect, parseArgs } from 'node:util';
import type { TestRunResult } from 'vitest/node';
import { instrumentSources, type Mutant, output } from './instrument.ts';
import { failuresOf, hashOf, measureReach, nameOf, openVitest, print, readJson } from './reach.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** How many mutants of the room are drawn. */
    draw: { type: 'string', default: '300' },
    /** Another seed draws others. */
    seed: { type: 'string', default: new Date().toISOString().slice(0, 10) },
    /** For how long, in seconds, tests look for a mutant. */
    seconds: { type: 'string', default: '30' },
    /** Takes the mutants that nobody noticed the last time instead of drawing. */
    survivors: { type: 'boolean', default: false },
  },
});
/** The room, and parts of the names of the files of tests that take part: all without one. */
const [room = '', ...filters] = positionals;

type Outcome = 'killed' | 'timed out' | 'survived' | 'not reached';

interface Result extends Omit<Mutant, 'id'> {
  readonly outcome: Outcome;
  /** The test that noticed the mutant, and its message. */
  readonly by?: string | undefined;
}

const placeOf = ({ file, place, mutator, replacement }: Omit<Mutant, 'id'>) =>
  [file, place, mutator, replacement].join(' ');
const isUnnoticed = ({ outcome }: Result) => outcome === 'survived' || outcome === 'not reached';

mkdirSync(output, { recursive: true });
const mutants = await instrumentSources();
const all = mutants.filter(({ file }) => file === `src/${room}.ts` || file.startsWith(`src/${room}/`));
if (all.length === 0) throw new Error(`no mutants in src/${room}: name a folder or a file below src`);

const report = join(output, `${room.replaceAll('/', '-')}.json`);
const before = new Set((readJson<Result[]>(report) ?? []).filter(isUnnoticed).map(placeOf));
const rankOf = (mutant: Mutant) => hashOf(options.seed, placeOf(mutant));
const drawn = options.survivors
  ? all.filter((mutant) => before.has(placeOf(mutant)))
  : all.sort((one, other) => rankOf(one).localeCompare(rankOf(other))).slice(0, Number(options.draw));
print(`${room}: ${all.length} mutants, ${drawn.length} drawn by the seed ${options.seed}`);

const { reaches, loaded } = await measureReach(filters);

/**
 * The files that reach the mutant, until the time is used up. First come those that are most about the source in the shortest time.
 * What is reached while the sources load, such as a table, may matter to each file that reaches anything of the same source, or to any file.
 */
function filesFor({ id, file }: Mutant): string[] {
  const ofSource = new Set(all.flatMap((other) => (other.file === file ? other.id : [])));
  const shares = reaches.map((reach) => {
    const own = reach.mutants.filter((each) => ofSource.has(each));
    const share = own.length / Math.max(reach.mutants.length, 1);
    return { ...reach, share, worth: share / reach.duration };
  });
  const isLoaded = loaded.has(id);
  const near = shares.filter(({ mutants, share }) => (isLoaded ? share > 0 : mutants.includes(id)));
  const reaching = isLoaded && near.length === 0 ? shares : near;
  let left = Number(options.seconds) * 1_000;
  return reaching
    .sort((one, other) => other.worth - one.worth)
    .flatMap(({ name, duration }) => {
      const fits = left > 0;
      left -= duration;
      return fits ? [name] : [];
    });
}

const vitest = await openVitest(`src/${room}`, 1);
const specifications = new Map((await vitest.globTestSpecifications()).map((file) => [nameOf(file), file]));

async function runWith(mutant: Mutant): Promise<Pick<Result, 'outcome' | 'by'>> {
  const files = filesFor(mutant).flatMap((name) => specifications.get(name) ?? []);
  if (files.length === 0) return { outcome: 'not reached' };
  vitest.provide('activeMutant', mutant.id);
  // A failure of the run before would end this one.
  vitest.state.filesMap.clear();
  return judge(await vitest.runTestSpecifications(files));
}

function judge({ testModules, unhandledErrors }: TestRunResult): Pick<Result, 'outcome' | 'by'> {
  const [by] = [...testModules.flatMap(failuresOf), ...unhandledErrors.map((error) => inspect(error))];
  if (by === undefined) return { outcome: 'survived' };
  const isTimeout = /timed out in \d+ms|Hit count limit reached/.test(by);
  return { outcome: isTimeout ? 'timed out' : 'killed', by: by.slice(0, 300) };
}

const results: Result[] = [];
for (const mutant of drawn) {
  const { id: _, ...described } = mutant;
  const result = { ...described, ...(await runWith(mutant)) };
  results.push(result);
  // At once, so that a run may be interrupted.
  writeFileSync(report, JSON.stringify(results, undefined, 2));
  print(`${results.length}/${drawn.length} ${result.outcome}: ${placeOf(mutant)}`);
}
await vitest.close();

for (const { outcome, file, place, mutator, original, replacement } of results.filter(isUnnoticed))
  print(`\n${outcome}: ${file}:${place} ${mutator}\n- ${original}\n+ ${replacement}`);
const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
print(
  `\n${room}: ${all.length} mutants, ${results.length} drawn, ${count('killed')} killed, ${count('timed out')} timed out, ` +
    `${count('survived')} survived, ${count('not reached')} not reached`,
);
// Vitest's servers may have left something that keeps the process alive.
process.exit();
