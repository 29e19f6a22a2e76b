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
import { SetupError } from '../../errors.ts';
import { release } from '../../version.ts';
import { endLine, migrationsPrefix, readCounters, readTables, rowsLine } from './format.ts';
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
  const rowsOf = (table: string) =>
    `SELECT ${pg.escapeLiteral(table)} AS table, json_strip_nulls(row_to_json(t))::text AS row FROM ${table} t`;
  // All dumps of an embedded database share one session.
  const cursor = `dump_${randomBytes(8).toString('hex')}`;
  const hold = isEmbedded ? 'WITH HOLD' : '';
  await client.query(
    `DECLARE ${cursor} NO SCROLL CURSOR ${hold} FOR ${tables.map(rowsOf).join(' UNION ALL ')}`,
  );
  // While a transaction is open in the embedded engine, its gateway waits. The engine keeps a copy of the rows in a temporary file.
  if (isEmbedded) await client.query('COMMIT');
  for (;;) {
    const { rows } = await client.query<{ table: string; row: string }>(`FETCH ${rowsAtOnce} FROM ${cursor}`);
    if (rows.length === 0) break;
    for (const table of tables) {
      const some = rows.filter((each) => each.table === table).map(({ row }) => row);
      if (some.length > 0) yield `${rowsLine(table, some)}\n`;
    }
    count.rows += rows.length;
  }
  await client.query(`CLOSE ${cursor}`);
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
