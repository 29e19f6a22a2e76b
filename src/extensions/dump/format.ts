/**
 * The lines of a dump. It is the SQL that `pg_dump --data-only` writes, and `load` runs nothing of it: it takes the rows as data. `psql`
 * can run it in a database with the tables, as a superuser, after `SET session_replication_role = replica`.
 */

import pg from 'pg';

/** Begins the line that has the migrations of the database, each as its name, `=` and its checksum. */
export const migrationsPrefix = '-- Migrations: ';
/** The line after the rows of a table. */
export const copyEnd = '\\.';
/** The last line, without which a dump is not complete. */
export const endLine = '-- End of the dump';

const identifier = '"(?:[^"]|"")+"';
export const identifiers = new RegExp(identifier, 'g');
/** The line before the rows: the table and its columns, quoted. */
export const copyPattern = new RegExp(
  `^COPY (${identifier}) \\((${identifier}(?:, ${identifier})*)\\) FROM stdin;$`,
);
/** A line that sets the counter of a table's ids. */
export const setvalPattern = /^SELECT setval\('([^']+)', (\d+), (true|false)\);$/;

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const characters: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** A row in the text format of COPY. */
export const rowLine = (values: readonly (string | null)[]): string =>
  values
    .map((value) => value?.replace(/[\\\n\r\t]/g, (found) => escapes[found] ?? found) ?? '\\N')
    .join('\t');

export const readRow = (line: string): (string | null)[] =>
  line
    .split('\t')
    .map((text) =>
      text === '\\N' ? null : text.replace(/\\(.)/g, (_, letter) => characters[letter] ?? letter),
    );

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
