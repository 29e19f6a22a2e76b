/** `dovetail forget`: removes an account from a mirror, with everything that no other account shares, also while a gateway runs. */

import type pg from 'pg';
import { withDatabase } from '../../../cli/database.ts';
import { printJson, say } from '../../../cli/output.ts';
import { program } from '../../../config/config.ts';
import { override } from '../../../config/environment.ts';
import { inTransaction } from '../../../database/transaction.ts';
import { SetupError } from '../../../errors.ts';
import { removeTemplates } from '../mirror/library.ts';
import { acquireSharedLock, isReadable, selectIds } from '../mirror/rows.ts';
import { readUpstreamConfig } from '../settings.ts';

interface ForgetFlags {
  readonly user?: string | undefined;
  readonly id?: number | undefined;
  readonly json?: true | undefined;
}

/** @param flags either `user` or `id` is set. */
export function runForget({ user, id, json }: ForgetFlags): Promise<void> {
  // A shell may still have the token for `sync --from`, but without UPSTREAM_URL it is an error.
  const config = readUpstreamConfig(override(process.env, { UPSTREAM_TOKEN: undefined }));
  return withDatabase(config, async ({ pool }) => {
    const forgotten = await forgetAccount(pool, { user, id });
    const { username, left } = forgotten;
    const shared = left === 0 ? '' : ` Others keep ${left} of its templates, which they have imported.`;
    say(`Removed the account ${printable(username)} (id ${forgotten.id}).${shared}`);
    if (json) printJson(forgotten);
  });
}

/**
 * Removes an account, also while a run reads it, which fails then.
 * @returns the account, and how many templates stay, since other accounts have imported them.
 * @throws {SetupError} if the database is no mirror, or does not have the account.
 */
export function forgetAccount(pool: pg.Pool, which: Pick<ForgetFlags, 'user' | 'id'>) {
  return inTransaction(pool, async (client) => {
    const account = await findAccount(client, which);
    await acquireSharedLock(client);
    const ids = await selectIds(client, `SELECT id FROM "DttTemplate" WHERE ${isReadable('DttTemplate')}`, [
      account.id,
    ]);
    await removeTemplates(client, ids, account.id);
    const { rows } = await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1)', [ids]);
    // Foreign keys delete the other rows with it, such as its sessions and its tokens.
    await client.query('DELETE FROM "User" WHERE id = $1', [account.id]);
    return { ...account, left: rows.length };
  });
}

async function findAccount(client: pg.PoolClient, { user, id }: Pick<ForgetFlags, 'user' | 'id'>) {
  // A run locks the row of the mirrored account before all others. The same order avoids deadlocks.
  const { rows } = await client.query<{ id: number; username: string }>(
    `SELECT id, username FROM "User" JOIN "MirroredAccount" AS account ON "userId" = id
     WHERE id = $1 OR username = $2 FOR UPDATE OF account`,
    [id, user],
  );
  if (rows[0]) return rows[0];
  const what = id === undefined ? `name ${printable(user ?? '')}` : `id ${id}`;
  throw new SetupError(
    `The mirror has no account of the ${what}. \`${program()} user list\` names its accounts.`,
  );
}

/** A name from upstream, quoted and without control characters. */
const printable = (text: string) => JSON.stringify(text.replace(/\p{C}/gu, ' '));
