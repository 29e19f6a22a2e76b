/**
 * The lines of a dump. It is SQL, and `load` runs nothing of it: it takes the rows as data. `psql` can run it in a database with the
 * tables, as a superuser, after `SET session_replication_role = replica`.
 */

import pg from 'pg';

/** Begins the line that has the migrations of the database, each as its name, `=` and its checksum. */
export const migrationsPrefix = '-- Migrations: ';
/** The last line, without which a dump is not complete. */
export const endLine = '-- End of the dump';

/** Inserts rows that are given as a list in JSON. @param list in SQL. */
export const insertion = (table: string, list: string) =>
  `INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, ${list})`;

/** @param rows as objects in JSON, which has no line breaks. */
export const rowsLine = (table: string, rows: readonly string[]) =>
  `${insertion(table, `'[${rows.join().replaceAll("'", "''")}]'`)};`;

/** A line with rows: the quoted name of their table, and the list as SQL has it between quotes. */
const rowsPattern =
  /^INSERT INTO ("(?:[^"]|"")+") SELECT \* FROM json_populate_recordset\(NULL::\1, '(\[.*\])'\);$/s;

export function readRows(line: string): { readonly table: string; readonly list: string } | undefined {
  const [, table, list] = rowsPattern.exec(line) ?? [];
  return table === undefined || list === undefined ? undefined : { table, list: list.replaceAll("''", "'") };
}

/** A line that sets the counter of a table's ids. */
export const setvalPattern = /^SELECT setval\('([^']+)', (\d+), (true|false)\);$/;

/** The quoted names of the tables whose rows are kept: not the ledger of migrations, and none that a crash empties. */
export async function readTables(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace
       AND relkind = 'r' AND relpersistence = 'p' AND relname <> '_prisma_migrations' ORDER BY 1`,
  );
  return rows.map(({ name }) => pg.escapeIdentifier(name));
}

/** The names of the counters of ids, each quoted if it has to be. */
export async function readCounters(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT quote_ident(relname) AS name FROM pg_class
     WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}
