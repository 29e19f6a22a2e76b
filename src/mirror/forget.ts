/** Removes an account from a mirror, with everything that no other account shares. */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import { kindsOf } from './kinds.ts';
import { removeTemplates } from './library.ts';
import { printable } from './report.ts';
import { acquireSharedLock, selectIds } from './rows.ts';

/** An account of a mirror, by its name or its id. */
export type WhichAccount = { readonly username: string } | { readonly id: number };

/**
 * The names of the rows that an account owns, by their tables. Sessions are removed before what they refer to, and templates
 * separately, since other accounts may have imported them.
 */
const owned = Object.fromEntries(
  Object.values(kindsOf(0))
    .map(({ table, name }) => [table, name] as const)
    .filter(([table]) => table !== 'DttTemplate')
    .toReversed(),
);

/** How many accounts an error names if there is none of the given name. */
const named = 10;

/** How long, in milliseconds, the command waits until all gateways have received the announcement. */
const longestDelivery = 1_000;

/** How long, in seconds, no gateway may read the account again. It is gone by then. */
const turn = 60;

/**
 * Removes an account. First it is marked as unread and all gateways are told, so that no response has only a part of its rows.
 * @returns the account, the numbers of removed rows by their names, and how many templates stay, since other accounts have imported
 * them.
 * @throws {SetupError} if the database is no mirror, or does not have the account.
 */
export async function forgetAccount(pool: pg.Pool, which: WhichAccount) {
  await inTransaction(pool, async (client) => {
    const { id } = await findAccount(client, which);
    await client.query(
      `UPDATE "MirroredAccount" SET "refreshedAt" = NULL, "heldBy" = 'forget', "heldUntil" = now() + $2 * interval '1 s'
       WHERE "userId" = $1`,
      [id, turn],
    );
    // A trigger announces every change of a user.
    await client.query('UPDATE "User" SET username = username WHERE id = $1', [id]);
  });
  await sleep(longestDelivery);
  return inTransaction(pool, async (client) => {
    const account = await findAccount(client, which);
    await acquireSharedLock(client);
    const removed: Record<string, number> = {};
    for (const [table, name] of Object.entries(owned)) {
      const { rowCount } = await client.query(`DELETE FROM "${table}" WHERE "ownerId" = $1`, [account.id]);
      removed[name] = rowCount ?? 0;
    }
    const library = 'SELECT "templateId" AS id FROM "DttLibraryEntry" WHERE "userId" = $1';
    const ids = await selectIds(client, library, [account.id]);
    await removeTemplates(client, ids, account.id);
    const { rows: left } = await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1)', [ids]);
    // Foreign keys delete the other rows with it, such as its tokens.
    await client.query('DELETE FROM "User" WHERE id = $1', [account.id]);
    return {
      ...account,
      removed: { ...removed, 'DTT templates': ids.length - left.length },
      left: left.length,
    };
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
    `SELECT id, username FROM "User" WHERE ${column} = $1 FOR UPDATE`,
    [value],
  );
  if (rows[0]) return rows[0];
  const { rows: others } = await client.query<{ id: number; username: string }>(
    'SELECT id, username FROM "User" ORDER BY lower(username), id LIMIT $1',
    [named + 1],
  );
  const names = others.slice(0, named).map(({ id, username }) => `${printable(username)} (id ${id})`);
  const known = [...names, ...(others.length > named ? ['more'] : [])].join(', ') || 'none';
  throw new SetupError(
    `The mirror has no account of the ${'id' in which ? `id ${which.id}` : `name ${printable(which.username)}`}. It has ${known}.`,
  );
}
