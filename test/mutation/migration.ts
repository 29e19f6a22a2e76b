/**
 * Puts faults into the triggers, functions and checks of the migrations, one after the other, and counts which of them the tests notice.
 *
 *     npx tsx test/mutation/migration.ts test/database/constraints test/database --draw 150
 */

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { checksumOf, migrate, readMigrations } from '../../src/database/migrate.ts';
import { root } from '../../src/root.ts';
import { createDatabase, queryOnce } from '../support/postgres.ts';
import { failuresOf, hashOf, openVitest, print } from './reach.ts';
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

const migrations = await readMigrations(new URL('prisma/migrations/', root));
const mutants = migrations.flatMap(({ name, sql }) => {
  const written = sql.slice(0, Math.max(sql.indexOf(begin), 0));
  const code = written.replace(/[^\n]/g, ' ') + sql.slice(written.length).replace(/^ *--.*$/gm, '');
  return [...faultsIn(code, [...sqlRules, ...rules])].map(({ text, fault }) => ({
    ...{ name, fault },
    text: written + text.slice(written.length),
  }));
});
const rankOf = ({ text }: { text: string }) => hashOf(options.seed, text);
const drawn = mutants
  .sort((one, other) => rankOf(one).localeCompare(rankOf(other)))
  .slice(0, Number(options.draw));
print(`${mutants.length} mutants, ${drawn.length} drawn by the seed ${options.seed}`);

const vitest = await openVitest('nothing');
const project = vitest.getProjectByName('postgres');
const found = await vitest.globTestSpecifications(filters.length > 0 ? filters : ['test/database']);
const files = found.filter((file) => file.project === project);
// This starts the server too.
const { testModules: controls } = await vitest.runTestSpecifications(files);
const failures = controls.flatMap(failuresOf);
if (failures.length > 0) throw new Error(`without a fault: ${failures.join('\n')}`);
const { engine } = project.getProvidedContext();
if (engine.kind !== 'postgres') throw new Error('the project has no server');
const { url } = engine;

/** A file is asked earlier if it has noticed more. */
const noticed = new Map<string, number>();
const counts = { killed: 0, survived: 0, invalid: 0 };

/** Makes a database with the fault, of which each test takes a copy. @returns whether the migration could be applied. */
async function prepare(template: string, mutant: (typeof mutants)[number]): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'dovetail-migrations-'));
  for (const { name, sql } of migrations) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'migration.sql'), name === mutant.name ? mutant.text : sql);
  }
  await createDatabase(url, template);
  const connection = { connectionString: `${url}/${template}` };
  const isApplied = await migrate(connection, pathToFileURL(`${folder}/`)).then(
    () => true,
    () => false,
  );
  // The gateway compares what was applied with its own migrations.
  for (const { name, sql } of isApplied ? migrations : [])
    await queryOnce(
      connection.connectionString,
      `UPDATE _prisma_migrations SET checksum = '${checksumOf(sql)}' WHERE migration_name = '${name}'`,
    );
  return isApplied;
}

async function look(mutant: (typeof mutants)[number], template: string): Promise<string | undefined> {
  if (!(await prepare(template, mutant))) return 'invalid';
  project.provide('engine', { kind: 'postgres', url, template });
  const rank = (id: string) => noticed.get(id) ?? 0;
  for (const file of files.toSorted((one, other) => rank(other.moduleId) - rank(one.moduleId))) {
    vitest.state.filesMap.clear();
    const { testModules } = await vitest.runTestSpecifications([file]);
    const [failure] = testModules.flatMap(failuresOf);
    if (failure === undefined) continue;
    noticed.set(file.moduleId, rank(file.moduleId) + 1);
    return failure.slice(0, 200);
  }
  return undefined;
}

for (const [index, mutant] of drawn.entries()) {
  const result = await look(mutant, `mutant_${index}`);
  const outcome = result === undefined ? 'survived' : result === 'invalid' ? 'invalid' : 'killed';
  counts[outcome] += 1;
  print(
    `${index + 1}/${drawn.length} ${outcome}: ${mutant.fault}${outcome === 'killed' ? `\n    by ${result}` : ''}`,
  );
}
await vitest.close();
print(JSON.stringify(counts));
process.exit();
