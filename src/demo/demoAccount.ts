/**
 * The demo account: what the embedded database starts with, and any other is given by `dovetail demo`, so that every query
 * has something to show.
 */

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createToken, findToken, TokenError } from '../auth/tokens.ts';
import type { Connected } from '../database/database.ts';
import { inTransaction } from '../database/transaction.ts';
import { demoUsername, loadDemoData } from './demoData.ts';

/** Its name tells it from the tokens that somebody creates for the account. */
const tokenName = 'demo-token';

/**
 * Fills an empty database with the demo account, and returns the account's token: random per data folder, stored
 * in the file `demo-token` there. Undefined for a database that holds other data.
 * @param dataDir undefined for a server, which has no folder: each call makes a new token then, in place of the last.
 * @param options.keepsTokens whether that leaves the last valid, as long as there is a place for another.
 * @param options.now when it is loaded, on which its times depend.
 */
export async function prepareDemo(
  { pool, sql }: Pick<Connected, 'pool' | 'sql'>,
  dataDir: string | undefined,
  { keepsTokens = false, now = new Date() }: { keepsTokens?: boolean; now?: Date } = {},
): Promise<string | undefined> {
  // A mirrored account belongs to somebody, whatever its name.
  if ((await sql.count('Mirror', {})) > 0) return undefined;
  if ((await sql.count('User', {})) === 0) await inTransaction(pool, (client) => loadDemoData(client, now));
  const [demo] = await sql.run<{ id: number }>('SELECT id FROM "User" WHERE username = $1', [demoUsername]);
  if (!demo) return undefined;

  const file = dataDir === undefined ? undefined : join(dataDir, 'demo-token');
  const stored = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  if ((await findToken(sql, stored.trim()))?.userId === demo.id) return stored.trim();

  // The file was lost or never written, or its token is revoked or of another database. An earlier token, whose secret
  // nobody knows, makes room for the new one: an account has a limited number.
  if (!keepsTokens)
    await sql.write('DELETE FROM "ApiToken" WHERE "userId" = $1 AND name = $2', [demo.id, tokenName]);
  const created = await createToken(pool, demoUsername, tokenName).catch((error: unknown) => {
    // Somebody has used up the account's tokens, or taken its tier: from then on it is an account like any other.
    if (error instanceof TokenError) return undefined;
    throw error;
  });
  if (!created) return undefined;
  const { token } = created;
  if (file === undefined) return token;
  await rm(`${file}.new`, { force: true });
  await writeFile(`${file}.new`, `${token}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return token;
}

/** Whether a token was made for the demo account before, as `prepareDemo` makes it. */
export async function hasDemoToken({ sql }: Pick<Connected, 'sql'>): Promise<boolean> {
  const rows = await sql.run(
    'SELECT FROM "ApiToken" t JOIN "User" u ON u.id = t."userId" WHERE u.username = $1 AND t.name = $2',
    [demoUsername, tokenName],
  );
  return rows.length > 0;
}
