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
