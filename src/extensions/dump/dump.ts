/**
 * `dovetail dump`: writes the rows of all tables, as they are at one moment, and the counters of their ids. The file has no tables:
 * it names the migrations that make them. Counts of the rate limit are left out, as a crash would lose them too.
 */

import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { locationText } from '../../cli/database.ts';
import { say } from '../../cli/output.ts';
import type { Config } from '../../config/config.ts';
import { longestOpening, retryWhileInUse } from '../../database/database.ts';
import { findEmbedded, hasDatabase, openEmbedded } from '../../database/embedded/embedded.ts';
import { readLedger, withoutTimeLimits } from '../../database/migrate.ts';
import { SetupError, systemCodeOf } from '../../errors.ts';
import { release } from '../../version.ts';
import { copyEnd, endLine, migrationsPrefix, readCounters, readTables, rowLine } from './format.ts';
import { withClient } from './open.ts';

/** @param file undefined for standard output. A file is replaced once the dump is complete. */
export async function runDump(config: Config, file: string | undefined): Promise<void> {
  const place = locationText(config);
  const isEmbedded = config.DATABASE_URL === undefined;
  if (isEmbedded && !(await hasDatabase(config.DATA_DIR)))
    throw new SetupError(`There is no database to dump: ${place}.`);
  const draft = `${file}.${process.pid}.new`;
  const count = { rows: 0 };
  try {
    await withClient(config, joinFolder, `Could not dump ${place}`, async (client) => {
      const lines = writeDump(client, place, isEmbedded, count);
      if (file === undefined) return pipeline(lines, process.stdout, { end: false });
      // Only its user may read it: it has the digests of tokens.
      await pipeline(lines, createWriteStream(draft, { flags: 'wx', mode: 0o600 }));
      await rename(draft, file);
    });
  } finally {
    if (file !== undefined) await rm(draft, { force: true });
  }
  say(`Dumped ${count.rows} rows of ${place}.`);
}

/** Opens an embedded database, which a gateway may have open. */
const joinFolder = (dataDir: string) =>
  retryWhileInUse(longestOpening, async () => {
    const connection = await findEmbedded(dataDir);
    return connection ? { connection } : openEmbedded(dataDir);
  });

/** How many rows are read at once. */
const rowsAtOnce = 500;

/** Values as PostgreSQL writes them. */
const asText = { getTypeParser: () => (value: string | Buffer) => value };

/** @param count is raised by each row. */
async function* writeDump(
  client: pg.Client,
  place: string,
  isEmbedded: boolean,
  count: { rows: number },
): AsyncGenerator<string> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  await client.query(withoutTimeLimits);
  // Rows that a policy hides from the role are an error, instead of missing.
  await client.query('SET LOCAL row_security = off');
  const applied = (await readLedger(client)).filter(({ isApplied }) => isApplied);
  if (applied.length === 0) throw new SetupError(`Nothing of Dovetail's is in ${place}.`);
  yield `-- The data of a Dovetail database, by Dovetail ${release}: \`dovetail load\` loads it into an empty one.\n`;
  yield `${migrationsPrefix}${applied.map(({ name, checksum }) => `${name}=${checksum}`).join(' ')}\n`;
  const tables = await readTables(client);
  const cursors = `${cursorPrefix}${process.pid}_${randomBytes(4).toString('hex')}_`;
  await declareCursors(client, tables, cursors, isEmbedded);
  for (const [index, table] of tables.entries()) {
    let end = '';
    for (;;) {
      const text = `FETCH ${rowsAtOnce} FROM ${cursors}${index}`;
      const { rows, fields } = await client.query<(string | null)[]>({
        text,
        rowMode: 'array',
        types: asText,
      });
      if (rows.length === 0) break;
      if (end === '')
        yield `COPY ${table} (${fields.map(({ name }) => pg.escapeIdentifier(name)).join(', ')}) FROM stdin;\n`;
      end = `${copyEnd}\n`;
      yield `${rows.map(rowLine).join('\n')}\n`;
      count.rows += rows.length;
    }
    yield end;
    await client.query(`CLOSE ${cursors}${index}`);
  }
  // Read after the rows: a counter that is ahead of them skips ids, and one that is behind would give ids again.
  for (const name of await readCounters(client)) {
    const { rows } = await client.query<{ line: string }>(
      `SELECT format('SELECT setval(%L, %s, %s);', $1::text, last_value, is_called::text) AS line FROM ${name}`,
      [name],
    );
    for (const { line } of rows) yield `${line}\n`;
  }
  yield `${endLine}\n`;
}

const cursorPrefix = 'dovetail_dump_';
const leftBehind = new RegExp(`^${cursorPrefix}(\\d+)_`);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // A process of another user cannot be sent a signal.
    return systemCodeOf(error) !== 'ESRCH';
  }
}

/**
 * Declares a cursor for each table, all with the rows of one moment.
 *
 * While a transaction is open in the embedded engine, its gateway waits. So there the transaction ends here: the engine keeps copies of
 * the rows in temporary files, until they are read. All dumps share one session, so each has names of its own for its cursors, with the
 * id of its process: one that was killed has left them behind.
 * @param cursors begins their names.
 */
async function declareCursors(
  client: pg.Client,
  tables: readonly string[],
  cursors: string,
  isEmbedded: boolean,
): Promise<void> {
  const { rows: left } = await client.query<{ name: string }>(
    'SELECT name FROM pg_cursors WHERE is_holdable',
  );
  for (const { name } of left) {
    const pid = leftBehind.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await client.query(`CLOSE ${name}`);
  }
  const hold = isEmbedded ? 'WITH HOLD' : '';
  for (const [index, table] of tables.entries())
    await client.query(`DECLARE ${cursors}${index} NO SCROLL CURSOR ${hold} FOR SELECT * FROM ${table}`);
  if (isEmbedded) await client.query('COMMIT');
}
