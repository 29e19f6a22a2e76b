/**
 * Switches faults on in the sources, one after the other, and counts which of them the tests notice. docs/decisions/mutation.md says how.
 *
 *     npm run mutate -- auth --draw 60 --seed anything
 */

import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import { inspect, parseArgs } from 'node:util';
import { instrumentSources, type Mutant } from './instrument.ts';
import { output, workerFile } from './output.ts';
import { batchSize, draw, failuresOf, measureReach, nameOf, openVitest, print, readJson } from './reach.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** How many mutants of the room are drawn. */
    draw: { type: 'string', default: '300' },
    /** Another seed draws others. */
    seed: { type: 'string', default: new Date().toISOString().slice(0, 10) },
    /** For how long, in seconds, tests look for a mutant. */
    seconds: { type: 'string', default: '15' },
    /** Takes the mutants that nobody noticed the last time instead of drawing. */
    survivors: { type: 'boolean', default: false },
  },
});
/** The room, or several with commas between them, and parts of the names of the files of tests that take part: all without one. */
const [room = '', ...filters] = positionals;
const parts = room.split(',').map((part) => `src/${part}`);

type Outcome = 'killed' | 'timed out' | 'survived' | 'not reached';

interface Result extends Omit<Mutant, 'id'> {
  readonly outcome: Outcome;
  /** The test that noticed the mutant, and its message. */
  readonly by?: string | undefined;
}

const projectOf = (name: string) => name.split(' ')[0];
const placeOf = ({ file, place, mutator, replacement }: Omit<Mutant, 'id'>) =>
  [file, place, mutator, replacement].join(' ');
const isUnnoticed = ({ outcome }: Result) => outcome === 'survived' || outcome === 'not reached';

const mutants = await instrumentSources();
const all = mutants.filter(({ file }) =>
  parts.some((part) => file === `${part}.ts` || file.startsWith(`${part}/`)),
);
if (all.length === 0) throw new Error(`no mutants in src/${room}: name a folder or a file below src`);

// The names of many rooms would be longer than a name of a file may be.
const report = join(output, `${room.replaceAll(/[/,]/g, '-').slice(0, 100)}.json`);
const before = new Set((readJson<Result[]>(report) ?? []).filter(isUnnoticed).map(placeOf));
const drawn = options.survivors
  ? all.filter((mutant) => before.has(placeOf(mutant)))
  : draw(all, placeOf, options.seed, options.draw);
print(`${room}: ${all.length} mutants, ${drawn.length} drawn by the seed ${options.seed}`);

const { reaches, loaded } = await measureReach(mutants, filters);

/**
 * The files that reach the mutant, until the time is used up. First come those that are most about the source in the shortest time.
 * What is reached while the sources load, such as a table, may matter to each file that imports the source.
 */
function filesFor({ id, file }: Mutant): string[] {
  const ofSource = new Set(all.flatMap((other) => (other.file === file ? other.id : [])));
  const isLoaded = loaded.has(id);
  const reaching = reaches
    .filter(({ mutants, imported }) => (isLoaded ? imported.includes(file) : mutants.includes(id)))
    .map(({ name, duration, mutants, imported }) => {
      const share = mutants.filter((each) => ofSource.has(each)).length / Math.max(mutants.length, 1);
      // A file may be about a table and run nothing of its source: then what else it imports counts.
      return { name, duration, worth: Math.max(share, 1 / Math.max(imported.length, 1)) / duration };
    });
  let left = Number(options.seconds) * 1_000;
  return reaching
    .sort((one, other) => other.worth - one.worth)
    .flatMap(({ name, duration }) => {
      const fits = left > 0;
      left -= duration;
      return fits ? [name] : [];
    });
}

const vitest = await openVitest(parts[1] === undefined ? `src/${room}` : 'src/');
const specifications = new Map((await vitest.globTestSpecifications()).map((file) => [nameOf(file), file]));
const projects = [...new Set([...specifications.keys()].map(projectOf))];
const resultOf = new Map<Mutant, Pick<Result, 'outcome' | 'by'>>();

/** A mutant, and the files that are to look for it. */
interface Search {
  readonly mutant: Mutant;
  readonly files: string[];
  /** Whether a file has not noticed it. */
  readonly isTried?: boolean;
}

/** A run of a file of tests. Without a mutant it is a control. */
interface Run {
  readonly file: string;
  readonly mutant?: Mutant;
}

/** Runs files one after the other in a worker. @returns the message of each run that failed, by its place in the order. */
async function runInOrder(runs: Run[]): Promise<Map<number, string>> {
  // Vitest would take the same file for one: the query distinguishes its runs, and setup.ts reads the mutant there.
  const modules = runs.flatMap(({ file, mutant }, index) => {
    const specification = specifications.get(file);
    if (specification === undefined) return [];
    const query = new URLSearchParams({
      run: String(index),
      ...(mutant ? { mutant: mutant.id } : { control: '' }),
    });
    return [specification.project.createSpecification(`${specification.moduleId}?${query}`)];
  });
  // What is kept of earlier runs is not needed.
  vitest.state.filesMap.clear();
  rmSync(workerFile, { force: true });
  const watch = setInterval(endHanging, 5_000);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(modules);
  clearInterval(watch);
  const failures = testModules.map((module) => [module.moduleId, failuresOf(module)[0]] as const);
  const indexOf = (path: string) => Number(new URLSearchParams(path.split('?')[1]).get('run') ?? -1);
  const hanging = testModules.find((module) => module.state() === 'pending');
  const strays = hanging ? [] : unhandledErrors.map((error) => [pathOf(error), inspect(error)] as const);
  const found = new Map(
    [...strays, ...failures].flatMap(([path, message]) => (message ? [[indexOf(path), message]] : [])),
  );
  if (!hanging) return found;
  // The files behind it run in another process.
  const next = indexOf(hanging.moduleId) + 1;
  const rest = await runInOrder(runs.slice(next));
  found.set(next - 1, `timed out in ${longest}ms`);
  return new Map([
    ...found,
    ...[...rest].map(([place, message]) => [place < 0 ? place : place + next, message] as const),
  ]);
}

/** How long a file of tests may take, in milliseconds. Vitest has no limit for an endless loop, nor for what comes before the first test. */
const longest = 60_000;

/** Ends the process that runs the tests if it stays at a file for longer. */
function endHanging() {
  if (!existsSync(workerFile) || Date.now() - statSync(workerFile).mtimeMs < longest) return;
  process.kill(Number(readFileSync(workerFile, 'utf8')), 'SIGKILL');
  rmSync(workerFile);
}

/** The file of tests during which an error was thrown. */
function pathOf(error: unknown): string {
  const isNamed = typeof error === 'object' && error !== null && 'VITEST_TEST_PATH' in error;
  return isNamed ? String(error.VITEST_TEST_PATH) : '';
}

function outcomeOf(message: string | undefined): Pick<Result, 'outcome' | 'by'> {
  if (message === undefined) return { outcome: 'survived' };
  const isTimeout = /timed out in \d+ms|Hit count limit reached/.test(message);
  return { outcome: isTimeout ? 'timed out' : 'killed', by: message.slice(0, 300) };
}

let done = 0;

function conclude(mutant: Mutant, result: Pick<Result, 'outcome' | 'by'>) {
  resultOf.set(mutant, result);
  done += 1;
  // At once, so that a run may be interrupted.
  writeFileSync(report, JSON.stringify(resultsSoFar(), undefined, 2));
  print(`${done}/${drawn.length} ${result.outcome}: ${placeOf(mutant)}`);
}

function resultsSoFar(): Result[] {
  return drawn.flatMap((mutant) => {
    const { id: _, ...described } = mutant;
    const result = resultOf.get(mutant);
    return result ? [{ ...described, ...result }] : [];
  });
}

/** Runs the files in workers that have run nothing else: the first file has one, and then the files of each project. */
async function searchAlone({ mutant, files: [first, ...others] }: Search) {
  if (first === undefined) return conclude(mutant, { outcome: 'not reached' });
  const ofProjects = projects.map((name) => others.filter((file) => projectOf(file) === name));
  for (const files of [[first], ...ofProjects]) {
    if (files.length === 0) continue;
    const failures = await runInOrder(files.map((file) => ({ file, mutant })));
    const [message] = failures.values();
    if (message !== undefined) return conclude(mutant, outcomeOf(message));
  }
  conclude(mutant, { outcome: 'survived' });
}

const projectOfNext = ({ files: [next = ''] }: Search) => projectOf(next);

/** The next file of a search, or the next few once one has noticed nothing: a worker for each would take longer. */
function nextFiles(search: Search): string[] {
  const files = search.files.slice(0, search.isTried ? 4 : 1);
  return files.filter((file) => projectOf(file) === projectOfNext(search));
}

/**
 * Runs files for each of many mutants in one worker, which saves the time to load the sources. At the end come the same files without a
 * mutant: if one fails, a mutant has left something behind, and no failure counts.
 * @returns the mutants that were not noticed, and those about which nothing can be said.
 */
async function searchTogether(searches: Search[]): Promise<{ unnoticed: Search[]; doubtful: Search[] }> {
  const runs: Run[] = searches.flatMap((search) =>
    nextFiles(search).map((file) => ({ mutant: search.mutant, file })),
  );
  const controls = [...new Set(runs.map(({ file }) => file))].map((file) => ({ file }));
  const failures = await runInOrder([...runs, ...controls]);
  const isTrusted = controls.every((_, index) => !failures.has(runs.length + index)) && !failures.has(-1);
  const unnoticed: Search[] = [];
  const doubtful: Search[] = [];
  for (const search of searches) {
    const [message] = runs.flatMap(({ mutant }, index) =>
      mutant === search.mutant ? (failures.get(index) ?? []) : [],
    );
    const done = nextFiles(search);
    const files = search.files.filter((file) => !done.includes(file));
    if (message === undefined) unnoticed.push({ ...search, files, isTried: true });
    else if (isTrusted) conclude(search.mutant, outcomeOf(message));
    else doubtful.push(search);
  }
  return { unnoticed, doubtful };
}

const searches = drawn.map((mutant) => ({ mutant, files: filesFor(mutant) }));
/** What is reached while the sources load needs a worker that loads them with the mutant. */
const alone = searches.filter(({ mutant, files }) => loaded.has(mutant.id) || files.length === 0);
let together: Search[] = searches.filter((search) => !alone.includes(search));
const unnoticed = new Map(together.map((search) => [search.mutant, search]));
while (together.length > 0) {
  const first = (search: Search) => search.files[0] ?? '';
  const sorted = together.sort((one, other) => first(one).localeCompare(first(other)));
  // The project with the most first: the few of another one may become more.
  const groups = projects.map((name) => sorted.filter((search) => projectOfNext(search) === name));
  const [most = []] = groups.sort((one, other) => other.length - one.length);
  const batch = most.slice(0, batchSize);
  const result = await searchTogether(batch);
  alone.push(...result.doubtful);
  const rest = together.filter((search) => !batch.includes(search));
  together = [...rest, ...result.unnoticed].filter(({ files }) => files.length > 0);
}
// A cache of the worker may have hidden a mutant: those that were not noticed are looked for once more alone.
for (const search of alone) await searchAlone(search);
for (const [mutant, search] of unnoticed)
  if (!resultOf.has(mutant)) await searchAlone({ ...search, files: search.files.slice(0, 2) });
await vitest.close();
const results = resultsSoFar();

for (const { outcome, file, place, mutator, original, replacement } of results.filter(isUnnoticed))
  print(`\n${outcome}: ${file}:${place} ${mutator}\n- ${original}\n+ ${replacement}`);
const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
print(
  `\n${room}: ${all.length} mutants, ${results.length} drawn, ${count('killed')} killed, ${count('timed out')} timed out, ` +
    `${count('survived')} survived, ${count('not reached')} not reached`,
);
// Vitest's servers may have left something that keeps the process alive.
process.exit();
