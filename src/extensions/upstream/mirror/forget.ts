/** Removes an account from a mirror, with everything that no other account shares. */

import type pg from 'pg';
import { program } from '../../../config/config.ts';
import { inTransaction } from '../../../database/transaction.ts';
import { SetupError } from '../../../errors.ts';
import { removeTemplates } from './library.ts';
import { acquireSharedLock, selectIds } from './rows.ts';

/** An account of a mirror, by its name or its id. */
type WhichAccount = { readonly username: string } | { readonly id: number };

/**
 * Removes an account, also while a run reads it, which fails then.
 * @returns the account, and how many templates stay, since other accounts have imported them.
 * @throws {SetupError} if the database is no mirror, or does not have the account.
 */
export function forgetAccount(pool: pg.Pool, which: WhichAccount) {
  return inTransaction(pool, async (client) => {
    const account = await findAccount(client, which);
    // A run locks this row before all others. The same order avoids deadlocks.
    await client.query('SELECT FROM "MirroredAccount" WHERE "userId" = $1 FOR UPDATE', [account.id]);
    await acquireSharedLock(client);
    const library = 'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $1';
    const ids = await selectIds(client, library, [account.id]);
    await removeTemplates(client, ids, account.id);
    const { rows } = await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1)', [ids]);
    // Foreign keys delete the other rows with it, such as its sessions and its tokens.
    await client.query('DELETE FROM "User" WHERE id = $1', [account.id]);
    return { ...account, left: rows.length };
  });
}

async function findAccount(
  client: pg.PoolClient,
  which: WhichAccount,
): Promise<{ id: number; username: string }> {
  const { rowCount: mirrors } = await client.query('SELECT FROM "Mirror"');
  if (mirrors === 0) throw new SetupError('This database mirrors no accounts, so there is none to forget.');
  const [column, value] = 'id' in which ? ['id', which.id] : ['username', which.username];
  const { rows } = await client.query<{ id: number; username: string }>(
    `SELECT id, username FROM "User" WHERE ${column} = $1`,
    [value],
  );
  if (rows[0]) return rows[0];
  const what = 'id' in which ? `id ${which.id}` : `name ${printable(which.username)}`;
  throw new SetupError(
    `The mirror has no account of the ${what}. \`${program()} user list\` names its accounts.`,
  );
}

/** A name from upstream, quoted and without control characters. */
export const printable = (text: string) => JSON.stringify(text.replace(/\p{C}/gu, ' '));
