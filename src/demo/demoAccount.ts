/**
 * The main file of this folder: the demo account, which has data for every query. No other account is ever changed. A new embedded
 * database starts with it, and with `DEMO_ACCOUNT=public` one of a server; `dovetail demo` loads it into any other. It is written by SQL: a
 * first start would take a quarter of a second longer with Prisma's client. May be replaced by a file with SQL that sets its times.
 */

import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createToken, findToken, TokenError } from '../auth/tokens.ts';
import type { ConnectedDatabase } from '../database/database.ts';
import { inTransaction } from '../database/transaction.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** The name of the token that this module creates, unlike those that users create for the account. */
const tokenName = 'demo-token';

/**
 * Fills an empty database with the demo account, and returns the account's token: random per data folder, stored
 * in the file `demo-token` there. Undefined for a database that holds other data.
 * @param dataDir undefined for a server, which has no folder: then each call creates a new token, which replaces the last.
 * @param now the time of loading, to which all times of the data are relative.
 */
export async function prepareDemo(
  { pool, sql }: Pick<ConnectedDatabase, 'pool' | 'sql'>,
  dataDir: string | undefined,
  now = new Date(),
): Promise<string | undefined> {
  // A mirrored account belongs to a user of the upstream, even if it has the name of the demo account.
  if ((await sql.count('Mirror', {})) > 0) return undefined;
  if ((await sql.count('User', {})) === 0) await inTransaction(pool, (client) => loadDemoData(client, now));
  // By its data: other accounts may have its name.
  const ofDemo = `SELECT "ownerId" AS id FROM "DttDevice" WHERE "bubbleId" = 'dtt-demo-1'`;
  const [demo] = await sql.run<{ id: number }>(ofDemo, []);
  if (!demo) return undefined;

  const file = dataDir === undefined ? undefined : join(dataDir, 'demo-token');
  const stored = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  if ((await findToken(sql, stored.trim()))?.userId === demo.id) return stored.trim();

  // The file was lost or never written, or its token is revoked or belongs to another database. The secret of the earlier
  // token is lost, so that token is deleted: an account may have only so many.
  await sql.run('DELETE FROM "ApiToken" WHERE "userId" = $1 AND name = $2', [demo.id, tokenName]);
  const scope = 'manage_on_loopback';
  const created = await createToken(pool, demoUsername, tokenName, { scope }).catch((error: unknown) => {
    // The account has as many tokens as it may have, or another tier. Then it is treated like any other account.
    if (error instanceof TokenError) return undefined;
    throw error;
  });
  if (!created) return undefined;
  const { token } = created;
  if (file === undefined) return token;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return token;
}
