/** Which mutants each file of tests reaches, from one run without a mutant. */

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path/posix';
import {
  createVitest,
  type Reporter,
  type TestModule,
  type TestSpecification,
  type Vitest,
} from 'vitest/node';
import { type Mutant, sources } from './instrument.ts';
import { output } from './output.ts';

/** What a file of tests reaches. */
interface Reach {
  /** Of the contents of the file. */
  readonly hash: string;
  /** In milliseconds. */
  readonly duration: number;
  readonly mutants: readonly string[];
  /** The sources that it imports, and those that they import. */
  readonly imported: readonly string[];
}

/** What is kept from one time to the next. */
interface Measured {
  /** Of the contents of all sources, and of the mutants in them. */
  readonly sources: string;
  /** The mutants that are reached while the sources load. */
  loaded: string[];
  readonly files: Record<string, Reach>;
}

const hashOf = (...texts: string[]) => createHash('sha256').update(texts.join('\n')).digest('hex');

/** So many of the items. A hash of the seed and their texts decides which, so nobody chooses. */
export function draw<Item>(
  items: Item[],
  textOf: (item: Item) => string,
  seed: string,
  count: string,
): Item[] {
  const rankOf = (item: Item) => hashOf(seed, textOf(item));
  return items.toSorted((one, other) => rankOf(one).localeCompare(rankOf(other))).slice(0, Number(count));
}

const hashOfFile = (name: string) => hashOf(readFileSync(name, 'utf8'));

/** The name of a file of tests in a project. */
export const nameOf = ({ project, moduleId }: TestSpecification | TestModule) =>
  `${project.name} ${relative(process.cwd(), moduleId)}`;

/** How many mutants are looked for in one worker. */
export const batchSize = 40;

export const print = (text: string) => process.stdout.write(`${text}\n`);

export function readJson<Content>(file: string): Content | undefined {
  try {
    // This program wrote it.
    return JSON.parse(readFileSync(file, 'utf8')) as Content;
  } catch {
    return undefined;
  }
}

/** @param mutated the start of the names of the sources in whose place the copies are loaded. */
export function openVitest(mutated: string, reporter: Reporter = {}): Promise<Vitest> {
  process.env.MUTATED = mutated;
  // Workers write there, too.
  mkdirSync(output, { recursive: true });
  const settings = { watch: false, reporters: [reporter] };
  return createVitest('test', { config: 'test/mutation/vitest.config.ts', ...settings });
}

/** What failed, with the messages. */
export const failuresOf = (module: TestModule): string[] => [
  ...module.errors().map(({ message }) => `${nameOf(module)}: ${message}`),
  ...[...module.children.allTests('failed')].flatMap((test) =>
    (test.result().errors ?? []).map(({ message }) => `${nameOf(module)}: ${test.fullName}: ${message}`),
  ),
];

/** The sources that a file of tests imports, directly or by others. */
function sourcesOf({ project, moduleId }: TestModule): string[] {
  const graphs = Object.values(project.vite.environments).map(({ moduleGraph }) => moduleGraph);
  const found = new Set(graphs.flatMap((graph) => graph.getModuleById(moduleId) ?? []));
  // A set also goes through what is added on the way.
  for (const { importedModules } of found) for (const module of importedModules) found.add(module);
  const names = [...found].flatMap(({ file }) => (file ? [relative(process.cwd(), file)] : []));
  return names.filter((name) => name.startsWith('src/'));
}

/**
 * Files that have not changed since the last time are not run again, unless a source has changed.
 * @param filters parts of the names of the files. Without one, all but slow ones take part.
 */
export async function measureReach(mutants: readonly Mutant[], filters: string[]) {
  const kept = `${output}/reach.json`;
  const key = hashOf(...sources().map(hashOfFile), JSON.stringify(mutants));
  const before = readJson<Measured>(kept);
  const measured: Measured = before?.sources === key ? before : { sources: key, loaded: [], files: {} };
  let left = 0;
  /** Each file is kept at once, so that a run may be interrupted. */
  function onTestModuleEnd(module: TestModule) {
    const { duration, collectDuration } = module.diagnostic();
    const { reached = [], loaded = [] } = module.meta();
    measured.loaded = [...new Set([...measured.loaded, ...loaded])];
    const mutants = module.ok() ? reached : [];
    const hash = hashOfFile(module.moduleId);
    measured.files[nameOf(module)] = {
      hash,
      duration: duration + collectDuration,
      mutants,
      imported: sourcesOf(module),
    };
    writeFileSync(kept, JSON.stringify(measured));
    left -= 1;
    print(`${left} left: ${nameOf(module)}`);
    for (const failure of failuresOf(module)) print(`left out, since it fails without a mutant: ${failure}`);
  }
  const vitest = await openVitest('src/', { onTestModuleEnd });
  vitest.provide('isMeasuring', true);
  const named = await vitest.globTestSpecifications(filters);
  const files = named.filter(({ moduleId }) => filters.length > 0 || !moduleId.includes('.slow.'));
  const changed = files.filter((file) => measured.files[nameOf(file)]?.hash !== hashOfFile(file.moduleId));
  left = changed.length;
  if (left > 0) print(`${left} files of tests run once without a mutant`);
  if (left > 0) await vitest.runTestSpecifications(changed);
  await vitest.close();
  const reaches = files.flatMap((file) => {
    const reach = measured.files[nameOf(file)];
    return reach ? [{ name: nameOf(file), ...reach }] : [];
  });
  return { reaches, loaded: new Set(measured.loaded) };
}
