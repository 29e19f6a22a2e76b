/** Removes an account from a mirror, with all that it alone has. */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import { removeTemplates } from './library.ts';
import { printable } from './report.ts';
import { acquireSharedLock, selectIds } from './rows.ts';

/** An account of a mirror, by its name or its id. */
export type WhichAccount = { readonly username: string } | { readonly id: number };

/**
 * What the rows that an account owns are called, by their table and in the order in which they are removed. Templates are
 * removed separately, since other accounts may have imported them.
 */
const owned = {
  DttSession: 'DTT sessions',
  DttDevice: 'DTT devices',
  LkbxDevice: 'LKBX devices',
  LockSession: 'lock sessions',
  LockTemplate: 'lock templates',
  OssmDevice: 'OSSM devices',
};

/** How many accounts are named to whoever has named another. */
const named = 10;

/** How long, in milliseconds, gateways have to hear that an account is to be forgotten. */
const longestDelivery = 1_000;

/** For how long, in seconds, none of them reads it again: until it is gone. */
const turn = 60;

/**
 * Removes an account. First of all gateways hear that it is not here: no response may have a part of its rows.
 * @returns the account, how many rows are gone, by what they are called, and how many templates stay with others who have them in
 * their library.
 * @throws {SetupError} for a database that is no mirror, and for an account that it does not have.
 */
export async function forgetAccount(pool: pg.Pool, which: WhichAccount) {
  await inTransaction(pool, async (client) => {
    const { id } = await findAccount(client, which);
    await client.query(
      `UPDATE "MirroredAccount" SET "refreshedAt" = NULL, "heldBy" = 'forget', "heldUntil" = now() + $2 * interval '1 s'
       WHERE "userId" = $1`,
      [id, turn],
    );
    // Which is announced, as every change of a user is.
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
    // What else there is of it goes along, such as its tokens.
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
