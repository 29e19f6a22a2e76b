/**
 * Puts faults into the triggers, functions and checks of the migrations, one after the other, and counts which of them the tests notice.
 *
 *     npx tsx test/mutation/migration.ts test/database/constraints test/database --draw 150
 *
 * The arguments are parts of the names of the files of tests, in the order in which they look for each fault.
 */

import { parseArgs } from 'node:util';
import type { TestSpecification } from 'vitest/node';
import { readMigrations } from '../../src/database/migrate.ts';
import { queryOnce } from '../support/postgres.ts';
import { batchSize, draw, failuresOf, openVitest, print } from './reach.ts';
import { faultsIn, type Rule, sqlRules } from './sql.ts';

const { values: options, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: { draw: { type: 'string', default: '300' }, seed: { type: 'string', default: 'migration' } },
});

/** In addition to what is changed in any SQL. */
const rules: readonly Rule[] = [
  // Without a statement that begins a line.
  [/(?<=\n *)(CREATE TRIGGER|CREATE UNIQUE|ALTER|PERFORM|DELETE|EXECUTE|REVOKE|GRANT)\b[^;]*;/g, ''],
  // Without an event of a trigger, one of the columns that fire it, its condition, or an entry of a list.
  [/\b(INSERT|DELETE) OR (?=UPDATE)/g, ''],
  [/ OR UPDATE OF .*(?= ON )/g, ''],
  [/(?<= OF ("?\w+"?, )*)"?\w+"?, (?=.* ON )/g, ''],
  [/, "?\w+"?(?= ON )/g, ''],
  [/ WHEN \(.*\)(?= EXECUTE)/g, ''],
  [/\w+\.\w+ (?=.*'\])|(?<=\n *)\[.*\],\n/g, ''],
  [/\bIF (?!NOT FOUND).* THEN/g, (found) => found.replace('IF ', 'IF NOT (').replace(' THEN', ') THEN')],
  [/ FOR (KEY SHARE|SHARE)/g, ''],
  [/ SKIP LOCKED/g, ''],
  [/ IN \(/g, ' NOT IN ('],
];

/** What Prisma writes ends before this line. */
const begin = '-- Names of users are unique';

const migrations = await readMigrations();
const mutants = migrations.flatMap(({ name, sql }) => {
  const written = sql.slice(0, Math.max(sql.indexOf(begin), 0));
  const code = written.replace(/[^\n]/g, ' ') + sql.slice(written.length).replace(/^ *--.*$/gm, '');
  return [...faultsIn(code, [...sqlRules, ...rules])].map(({ text, fault }) => ({
    ...{ name, fault },
    text: written + text.slice(written.length),
  }));
});
const drawn = draw(mutants, ({ text }) => text, options.seed, options.draw);
print(`${mutants.length} mutants, ${drawn.length} drawn by the seed ${options.seed}`);

const vitest = await openVitest('nothing');
const project = vitest.getProjectByName('postgres');
const found: TestSpecification[] = [];
for (const filter of filters) found.push(...(await vitest.globTestSpecifications([filter])));
const files = [...new Set(found.filter((file) => file.project === project).map(({ moduleId }) => moduleId))];

if (files.length === 0) throw new Error('name files of tests that run on PostgreSQL');

/** Runs a file of tests with each of these parameters, in one worker. @returns the first failure of each, or nothing. */
async function runWith(file: string, parameters: readonly string[]): Promise<(string | undefined)[]> {
  vitest.state.filesMap.clear();
  const ids = parameters.map((each) => `${file}?${each}`);
  const { testModules } = await vitest.runTestSpecifications(
    ids.map((id) => project.createSpecification(id)),
  );
  const failures = new Map(testModules.map((module) => [module.moduleId, failuresOf(module)[0]]));
  return ids.map((id) => failures.get(id));
}

// The first run starts the server, too.
for (const file of files)
  for (const failure of await runWith(file, [''])) if (failure) throw new Error(failure);
const { engine } = project.getProvidedContext();
if (engine.kind !== 'postgres') throw new Error('the project has no server');
const { url, template } = engine;

/** Makes a database with the fault, of which each test takes a copy. @returns whether the migrations could be applied. */
async function prepare(database: string, mutant: (typeof mutants)[number]): Promise<boolean> {
  await queryOnce(`${url}/postgres`, `CREATE DATABASE ${database} TEMPLATE ${template}`);
  const changed = migrations.map(({ name, sql }) => (name === mutant.name ? mutant.text : sql));
  // The gateway compares the ledger with its own migrations, so the ledger stays.
  const made = queryOnce(
    `${url}/${database}`,
    `CREATE SCHEMA kept; ALTER TABLE _prisma_migrations SET SCHEMA kept; DROP SCHEMA public CASCADE; CREATE SCHEMA public;
     GRANT USAGE ON SCHEMA public TO PUBLIC; ALTER TABLE kept._prisma_migrations SET SCHEMA public;\n${changed.join('\n')}`,
  );
  return made.then(
    () => true,
    () => false,
  );
}

const counts = { killed: 0, survived: 0, invalid: 0 };

function conclude(outcome: keyof typeof counts, { fault }: (typeof mutants)[number], by = '') {
  counts[outcome] += 1;
  print(`${outcome}: ${fault.replaceAll('\n', ' ')}${by && `\n    ${by.slice(0, 200)}`}`);
}

for (let first = 0; first < drawn.length; first += batchSize) {
  let left: { mutant: (typeof mutants)[number]; database: string }[] = [];
  for (const [index, mutant] of drawn.slice(first, first + batchSize).entries()) {
    const database = `mutant_${first + index}`;
    if (await prepare(database, mutant)) left.push({ mutant, database });
    else conclude('invalid', mutant);
  }
  for (const file of files) {
    const failures = await runWith(
      file,
      left.map(({ database }) => `template=${database}`),
    );
    for (const [index, { mutant }] of left.entries())
      if (failures[index] !== undefined) conclude('killed', mutant, failures[index]);
    left = left.filter((_, index) => failures[index] === undefined);
  }
  for (const { mutant } of left) conclude('survived', mutant);
}
await vitest.close();
print(JSON.stringify(counts));
process.exit();
