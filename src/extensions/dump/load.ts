/**
 * `dovetail load`: loads a dump into a database without data, in one transaction. The database gets the migrations of the dump, then
 * the rows, and then the migrations that are newer: so a dump of an earlier release is migrated as its database would be.
 *
 * Triggers and foreign keys are off until the rows are there: users and templates refer to each other, and a user may have tokens that
 * could not be created now. Adding the keys again checks them.
 */

import { createReadStream } from 'node:fs';
import type pg from 'pg';
import { locationText } from '../../cli/database.ts';
import { say } from '../../cli/output.ts';
import type { Config } from '../../config/config.ts';
import { openEmbedded } from '../../database/embedded/embedded.ts';
import { newDatabaseFile } from '../../database/embedded/newDatabase.ts';
import {
  applyAll,
  beginAlone,
  checksumOf,
  findForeignTables,
  findSchemaProblem,
  findVersionProblem,
  type Migration,
  readMigrations,
  readProgress,
  reject,
} from '../../database/migrate.ts';
import { errorText, SetupError } from '../../errors.ts';
import {
  endLine,
  insertion,
  migrationsPrefix,
  readCounters,
  readRows,
  readTables,
  setvalPattern,
} from './format.ts';
import { withClient } from './open.ts';

/**
 * @param file `-` for standard input.
 * @param folder the migrations of this version, by default the checked-in ones.
 */
export async function runLoad(config: Config, file: string, folder?: URL): Promise<void> {
  const place = locationText(config);
  const all = await readMigrations(folder);
  const lines = readLines(file);
  const dumped = await readHeader(lines, all, file);
  // A new folder begins with the tables, unless the dump needs earlier ones.
  const packed = dumped.length === all.length ? await newDatabaseFile() : undefined;
  const openFolder = (dataDir: string) => openEmbedded(dataDir, packed);
  const failed = `Nothing of ${file} was loaded`;
  const count = await withClient(config, openFolder, failed, async (client) => {
    await beginAlone(client);
    await prepareTables(client, all, dumped, `${failed}: ${place}`);
    const loaded = await loadRows(client, lines, file);
    await applyAll(client, all.slice(dumped.length));
    // Gateways forget what they know of the empty database.
    await client.query(`SELECT announce('*')`);
    await client.query('ANALYZE');
    await client.query('COMMIT');
    return loaded;
  });
  say(`Loaded ${count} rows into ${place}.`);
}

/** The lines of a file. Not by `node:readline`, for which characters that a text may have end a line too. */
async function* readLines(file: string): AsyncGenerator<string, undefined> {
  const input = file === '-' ? process.stdin : createReadStream(file);
  let rest = '';
  try {
    for await (const chunk of input.setEncoding('utf8')) {
      // A terminal has written other ends of lines.
      const pieces = (rest + chunk).split(/\r?\n/);
      rest = pieces.pop() ?? '';
      yield* pieces;
    }
  } catch (error) {
    throw new SetupError(`${file} cannot be read: ${errorText(error)}`, { cause: error });
  }
}

const incomplete = (file: string) =>
  new SetupError(`${file} is not a complete dump, and nothing of it was loaded.`);

/** The migrations of the dump: all of this version, or the first of them. @throws {SetupError} when it has others. */
async function readHeader(
  lines: AsyncIterator<string, undefined>,
  all: readonly Migration[],
  file: string,
): Promise<Migration[]> {
  await lines.next();
  const { value = '' } = await lines.next();
  if (!value.startsWith(migrationsPrefix)) throw incomplete(file);
  const texts = new Set(value.slice(migrationsPrefix.length).split(' '));
  const dumped = all.filter(({ name, sql }) => texts.delete(`${name}=${checksumOf(sql)}`));
  reject(file, findVersionProblem([...texts].map((text) => text.replace(/=.*/, ''))));
  return dumped;
}

/**
 * Brings the database to the migrations of the dump.
 * @param failed begins the message about a database that cannot be used, and names it.
 * @throws {SetupError} when it has data, or other tables.
 */
async function prepareTables(
  client: pg.Client,
  all: readonly Migration[],
  dumped: readonly Migration[],
  failed: string,
): Promise<void> {
  reject(failed, await findForeignTables(client, all));
  // The later migrations of this version are unknown to the dump.
  const { applied, pending, unknown } = await readProgress(client, dumped);
  reject(failed, findVersionProblem(unknown));
  if (applied === 0) reject(failed, await findSchemaProblem(client));
  await applyAll(
    client,
    dumped.filter(({ name }) => pending.includes(name)),
  );
  const tables = await readTables(client);
  await client.query(`LOCK TABLE ${tables.join()} IN ACCESS EXCLUSIVE MODE`);
  const { rows } = await client.query(
    tables.map((table) => `SELECT WHERE EXISTS (SELECT FROM ${table})`).join(' UNION ALL '),
  );
  if (rows.length > 0)
    throw new SetupError(`${failed} has data. A dump is loaded into an empty database alone.`);
}

/** Loads the rows and the counters, and returns the number of rows. */
async function loadRows(client: pg.Client, lines: AsyncIterable<string>, file: string): Promise<number> {
  const tables = await readTables(client);
  const counters = await readCounters(client);
  const { rows: rules } = await client.query<{ off: string; on: string }>(readRules, [tables]);
  for (const { off } of rules) await client.query(off);
  const others = new Set<string>();
  let count = 0;
  let last = '';
  for await (const line of lines) {
    last = line;
    const found = readRows(line);
    const [, sequence, value, isCalled] = setvalPattern.exec(line) ?? [];
    // The migrations have made all tables and counters of Dovetail's.
    if (found && tables.includes(found.table)) {
      const { rowCount } = await client.query(insertion(found.table, '$1'), [found.list]);
      count += rowCount ?? 0;
    } else if (found) others.add(found.table);
    else if (sequence !== undefined) {
      if (counters.includes(sequence))
        await client.query('SELECT setval($1, $2, $3)', [sequence, value, isCalled]);
    } else if (line !== endLine) throw incomplete(file);
  }
  if (last !== endLine) throw incomplete(file);
  for (const table of others) say(`Left out: the table ${table}, which is not Dovetail's.`);
  for (const { on } of rules) await client.query(on);
  return count;
}

/** Returns the statements that switch the triggers and foreign keys of tables off, and on as they were. */
const readRules = `
  SELECT format('ALTER TABLE %s DISABLE TRIGGER %I', tgrelid::regclass, tgname) AS off,
    format('ALTER TABLE %s ENABLE %s TRIGGER %I', tgrelid::regclass, CASE tgenabled WHEN 'A' THEN 'ALWAYS' END, tgname) AS on
  FROM pg_trigger WHERE tgrelid = ANY ($1::regclass[]) AND NOT tgisinternal AND tgenabled IN ('O', 'A')
  UNION ALL
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE conrelid = ANY ($1::regclass[]) AND contype = 'f'`;
