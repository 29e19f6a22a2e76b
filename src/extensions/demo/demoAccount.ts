/**
 * The main file of this folder: the demo account, which has data for every query. No other account is ever changed. A new embedded
 * database starts with it, and with `DEMO_ACCOUNT=public` one of a server; `dovetail demo` loads it into any other. It is written by SQL: a
 * first start would take a quarter of a second longer with Prisma's client. To replace it: run a file with SQL that sets its times.
 */

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type pg from 'pg';
import { createToken, findToken, TokenError } from '../../auth/tokens.ts';
import type { AccountOwner } from '../../auth/users.ts';
import type { ConnectedDatabase } from '../../database/database.ts';
import { makeFolder } from '../../database/embedded/folder.ts';
import { tables } from '../../database/models.ts';
import { inTransaction } from '../../database/transaction.ts';
import { SetupError } from '../../errors.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** To whom the users of a database may belong. */
type Owner = Pick<AccountOwner, 'table'>;

/** The name of the token that this module creates, unlike those that users create for the account. */
const tokenName = 'demo-token';

/**
 * Fills an empty database with the demo account, and returns the account's token: random per data folder, stored
 * in the file `demo-token` there. Undefined for a database that holds other data.
 * @param dataDir undefined for a server, which has no folder: then each call creates a new token, which replaces the last.
 * @param now the time of loading, to which all times of the data are relative.
 * @param owners to whom the users of a database may belong. Then no user of it is the demo account, whatever their name.
 */
export async function prepareDemo(
  { pool, sql }: Pick<ConnectedDatabase, 'pool' | 'sql'>,
  dataDir: string | undefined,
  now = new Date(),
  owners: readonly Owner[] = [],
): Promise<string | undefined> {
  for (const { table } of owners)
    if ((await sql.run(`SELECT FROM "${table}" LIMIT 1`, [])).length > 0) return undefined;
  if ((await sql.count('User', {})) === 0) await inTransaction(pool, (client) => loadDemoData(client, now));
  const ofDemo = `SELECT id, username FROM "User" WHERE id = (SELECT "ownerId" FROM ${firstRecord})`;
  const [demo] = await sql.run<{ id: number; username: string }>(ofDemo, []);
  if (!demo) return undefined;

  const file = dataDir === undefined ? undefined : join(dataDir, 'demo-token');
  const stored = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  if ((await findToken(sql, stored.trim()))?.userId === demo.id) return stored.trim();

  // The file was lost or never written, or its token is revoked or belongs to another database. The secret of the earlier
  // token is lost, so that token is deleted: an account may have only so many.
  await sql.run('DELETE FROM "ApiToken" WHERE "userId" = $1 AND name = $2', [demo.id, tokenName]);
  const scope = 'manage_on_loopback';
  const created = await createToken(pool, demo.username, tokenName, { scope }).catch((error: unknown) => {
    // The account has as many tokens as it may have, or another tier. Then it is treated like any other account.
    if (error instanceof TokenError) return undefined;
    throw error;
  });
  if (!created) return undefined;
  const { token } = created;
  if (file === undefined) return token;
  await makeFolder(dirname(file));
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return token;
}

/**
 * All tables except the counts of the rate limit, quoted. They are emptied by name: CASCADE would also empty tables of other programs
 * that refer to them.
 */
const emptied = tables.filter((table) => table !== 'RateLimit').map((table) => `"${table}"`);

/** The first record of the demo account: others may have its name. */
const firstRecord = `"DttDevice" WHERE "bubbleId" = 'dtt-demo-1'`;

/** Whether the database is empty, or has the users of the demo account and no others. */
const census = (owners: readonly Owner[]) => `
  SELECT ${owners.map(({ table }) => `NOT EXISTS (SELECT FROM "${table}") AND `).join('')}
    NOT EXISTS (SELECT FROM "User" WHERE username NOT IN ('${demoUsername}', 'coach')) AND
    (NOT EXISTS (SELECT FROM "User") OR EXISTS (SELECT FROM ${firstRecord})) AS "isOnlyDemo"`;

/** @throws {SetupError} for a database that has other users. Nothing is changed. */
export async function checkOnlyDemo(
  database: Pick<pg.ClientBase, 'query'>,
  owners: readonly Owner[] = [],
): Promise<void> {
  const { rows } = await database.query<{ isOnlyDemo: boolean }>(census(owners));
  if (rows[0]?.isOnlyDemo) return;
  throw new SetupError(
    'This database has users of its own, or accounts that live elsewhere, and the demo account needs an empty database: name another database in DATABASE_URL or DATA_DIR. To get one here, start over: stop the gateway and remove the folder postgres in DATA_DIR; on a server, make a new database.',
  );
}

/**
 * Replaces all data of the database by a new demo account. The tokens of the account stay valid: a running gateway shows
 * one of them, and others may be in use.
 * @throws {SetupError} for a database that has any other data. Nothing is changed then.
 */
export const resetDemo = (pool: pg.Pool, owners: readonly Owner[] = []): Promise<void> =>
  inTransaction(pool, async (client) => {
    // The locks keep others from adding users until the transaction ends.
    const locked = ['User', ...owners.map(({ table }) => table)].map((table) => `"${table}"`);
    await client.query(`LOCK TABLE ${locked.join()} IN SHARE ROW EXCLUSIVE MODE`);
    await checkOnlyDemo(client, owners);
    // As JSON, so that all columns are restored.
    const { rows: tokens } = await client.query<{ token: string }>(
      `SELECT to_jsonb(t)::text AS token FROM "ApiToken" t JOIN "User" u ON u.id = "userId" WHERE username = $1 ORDER BY t.id`,
      [demoUsername],
    );
    // The ids begin again, as those of a new database do.
    await client.query(`TRUNCATE ${emptied.join()} RESTART IDENTITY`);
    await loadDemoData(client, new Date());
    for (const { token } of tokens)
      await client.query(
        `INSERT INTO "ApiToken" SELECT (jsonb_populate_record(NULL::"ApiToken", $1::jsonb || jsonb_build_object(
          'id', nextval(pg_get_serial_sequence('"ApiToken"', 'id')),
          'userId', (SELECT id FROM "User" WHERE username = $2)))).*`,
        [token, demoUsername],
      );
  });
