/**
 * `dovetail load`: loads a dump into a database without data, in one transaction. The database gets the migrations of the dump, then
 * the rows, and then the migrations that are newer: so a dump of an earlier release is migrated as its database would be.
 *
 * Triggers and foreign keys are off until the rows are there: users and templates refer to each other, and a user may have tokens that
 * could not be created now. Adding the keys again checks them.
 */

import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
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
  copyEnd,
  copyPattern,
  endLine,
  identifiers,
  migrationsPrefix,
  readCounters,
  readRow,
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
  const dump = readLines(file === '-' ? process.stdin : createReadStream(file), file);
  const dumped = await readHeader(dump, all, file);
  // A new folder begins with the tables, unless the dump needs earlier ones.
  const packed = dumped.length === all.length ? await newDatabaseFile() : undefined;
  const openFolder = (dataDir: string) => openEmbedded(dataDir, packed);
  const failed = `Nothing of ${file} was loaded`;
  const count = await withClient(config, openFolder, failed, async (client) => {
    await beginAlone(client);
    await prepareTables(client, all, dumped, `${failed}: ${place}`);
    const loaded = await loadRows(client, dump);
    await applyAll(client, all.slice(dumped.length));
    // Gateways forget what they know of the empty database.
    await client.query(`SELECT announce('*')`);
    await client.query('ANALYZE');
    await client.query('COMMIT');
    return loaded;
  });
  say(`Loaded ${count} rows into ${place}.`);
}

interface Lines {
  /** The next line; undefined after the last one. */
  next(): Promise<string | undefined>;
  /** The error for the line at hand. */
  broken(what: string): SetupError;
}

/** Not by `node:readline`, for which characters that a text may have end a line too. */
function readLines(input: Readable, file: string): Lines {
  let number = 0;
  const lines = (async function* () {
    let rest = '';
    for await (const chunk of input.setEncoding('utf8')) {
      const pieces = (rest + chunk).split('\n');
      rest = pieces.pop() ?? '';
      yield* pieces;
    }
  })();
  return {
    async next() {
      number++;
      const { value } = await lines.next().catch((error) => {
        throw new SetupError(`${file} cannot be read: ${errorText(error)}`, { cause: error });
      });
      return value ?? undefined;
    },
    broken: (what) =>
      new SetupError(`${file} is not a complete dump, and nothing of it was loaded: line ${number} ${what}.`),
  };
}

/** The migrations of the dump: all of this version, or the first of them. @throws {SetupError} when it has others. */
async function readHeader(dump: Lines, all: readonly Migration[], file: string): Promise<Migration[]> {
  await dump.next();
  const line = (await dump.next()) ?? '';
  if (!line.startsWith(migrationsPrefix))
    throw dump.broken('does not name the migrations, as a dump of Dovetail does');
  // Otherwise the last migration would seem to be unknown.
  if (line.endsWith('\r')) throw dump.broken('ends with a carriage return, which a dump has not');
  const texts = new Set(line.slice(migrationsPrefix.length).split(' '));
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
async function loadRows(client: pg.Client, dump: Lines): Promise<number> {
  const tables = await readTables(client);
  const counters = await readCounters(client);
  const { rows: rules } = await client.query<{ off: string; on: string }>(readRules, [tables]);
  for (const { off } of rules) await client.query(off);
  let count = 0;
  for (let line = await dump.next(); line !== endLine; line = await dump.next()) {
    const [, table, columns] = copyPattern.exec(line ?? '') ?? [];
    const [, sequence, last, called] = setvalPattern.exec(line ?? '') ?? [];
    if (table !== undefined && columns !== undefined) {
      // The migrations have made all tables of Dovetail's.
      const isKnown = tables.includes(table);
      if (!isKnown) say(`Left out: the table ${table}, which is not Dovetail's.`);
      const text = `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1)`;
      for await (const rows of readRows(dump, columns)) {
        if (!isKnown) continue;
        await client.query(text, [JSON.stringify(rows)]);
        count += rows.length;
      }
    } else if (sequence !== undefined) {
      // Those of other tables, and of other schemas, are left out.
      if (counters.includes(sequence))
        await client.query('SELECT setval($1, $2, $3)', [sequence, last, called]);
    } else throw dump.broken('begins no table');
  }
  for (const { on } of rules) await client.query(on);
  return count;
}

/** How many rows are written at once. */
const rowsAtOnce = 500;

/** The rows of a table, with their values by column. */
async function* readRows(dump: Lines, columns: string): AsyncGenerator<Record<string, string | null>[]> {
  const names = (columns.match(identifiers) ?? []).map((name) => name.slice(1, -1).replaceAll('""', '"'));
  let rows: Record<string, string | null>[] = [];
  for (let line = await dump.next(); line !== copyEnd; line = await dump.next()) {
    const values = readRow(line ?? '');
    if (line === undefined || values.length !== names.length) throw dump.broken('is no row of its table');
    rows.push(Object.fromEntries(names.map((name, index) => [name, values[index] ?? null])));
    if (rows.length < rowsAtOnce) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
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
