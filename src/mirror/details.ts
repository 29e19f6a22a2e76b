/** Details of records that are asked for before the background has come to them, or that were written upstream since. */

import pMap from 'p-map';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { DetailedModel } from '../schema/context.ts';
import { concurrency, fetchRecord } from './fetchRecord.ts';
import { kindsOf } from './kinds/kinds.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { acquireSharedLock } from './sharedLock.ts';
import type { Upstream } from './upstream.ts';
import { removeRecords, type Transaction, writeRecords } from './writer.ts';

export interface RecordOptions {
  readonly pool: pg.Pool;
  /** With the token of the account. */
  readonly upstream: Upstream;
  readonly accountId: number;
  readonly signal?: AbortSignal;
}

export interface DetailsOptions extends RecordOptions {
  readonly model: DetailedModel;
  readonly ids: readonly number[];
}

export interface Details {
  /**
   * Fetches the details of records by their ids, and writes them where they are still pending. One that somebody else is
   * fetching is waited for.
   * @returns the ids of the records whose details cannot be understood, or are not given out: they stay pending.
   * @throws {UpstreamError} when the upstream cannot be used; what was read until then is in the mirror.
   */
  fetch(options: DetailsOptions): Promise<number[]>;
}

/** How often a record is fetched that changes while it is. */
const maxAttempts = 3;

/** Whether the details came, or are known not to. One that is missing may be so for a moment: a run finds out. */
type Outcome = 'settled' | 'missing' | 'unusable';

async function fetchOne(
  options: RecordOptions,
  kind: Kind,
  id: number,
  attempts = maxAttempts,
): Promise<Outcome> {
  const { pool, upstream, accountId, signal } = options;
  const before = await readVersion(pool, kind, id);
  if (before === undefined) return 'settled';
  const fetched = await fetchRecord(upstream, kind, id, signal);
  if (fetched === undefined) return 'missing';
  if (typeof fetched !== 'object') return 'unusable';
  const outcome = await inTransaction(pool, async (client) => {
    if (kind.table === 'DttTemplate') await acquireSharedLock(client);
    // It may have come meanwhile, or be gone: no lease keeps out whoever else writes.
    const version = await readVersion(client, kind, id, 'FOR UPDATE');
    if (version === undefined) return 'settled';
    // A list that was read meanwhile may know better.
    if (version !== before) return 'outdated';
    return (await write(client, kind, fetched, accountId)) ? 'settled' : 'unusable';
  });
  if (outcome !== 'outdated') return outcome;
  return attempts > 1 ? fetchOne(options, kind, id, attempts - 1) : 'unusable';
}

/**
 * Reads a session again that a client has written upstream, whatever is known of it here, and removes it if it is gone.
 * @param isDeleted whether the client has deleted it: by itself, that the upstream has no such session may also mean that the
 * token has come to be another account's.
 * @throws {UpstreamError} when the upstream cannot be used; the details of the session are pending from then on.
 */
export async function readAgain(options: RecordOptions, id: number, isDeleted: boolean): Promise<void> {
  const { pool, accountId } = options;
  // Also if its details are pending already, so that the row gets another version: details that were asked for before are outdated.
  // What the list said before says nothing of the session as it is now.
  const { rowCount } = await pool.query(
    `UPDATE "DttSession" SET "detailsPending" = true, "listedDigest" = '' WHERE id = $1 AND "ownerId" = $2`,
    [id, accountId],
  );
  if (rowCount === 0) return;
  const kind = kindOf('DttSession', accountId);
  if ((await fetchOne(options, kind, id)) !== 'missing' || !isDeleted) return;
  await inTransaction(pool, (client) => removeRecords(client, kind, [id], accountId));
}

/** One for a gateway, so that no two requests of its clients fetch the same record. */
export function createDetails(): Details {
  const underWay = new Map<string, Promise<Outcome>>();

  return {
    async fetch(options) {
      const { accountId, model, ids, signal } = options;
      const kind = kindOf(model, accountId);
      const outcomes = await pMap(
        ids,
        (id) => {
          // Two accounts that see one template ask with tokens of their own.
          const key = `${accountId} ${model} ${id}`;
          const known = underWay.get(key);
          if (known) return known;
          const outcome = fetchOne(options, kind, id).finally(() => underWay.delete(key));
          underWay.set(key, outcome);
          return outcome;
        },
        { concurrency, ...(signal && { signal }) },
      );
      return ids.filter((_id, index) => outcomes[index] !== 'settled');
    },
  };
}

/** Which version of a record's row there is, if its details are pending. */
async function readVersion(
  client: pg.Pool | pg.PoolClient,
  { table }: Kind,
  id: number,
  lock = '',
): Promise<string | undefined> {
  const { rows } = await client.query<{ version: string }>(
    `SELECT xmin::text AS version FROM "${table}" WHERE id = $1 AND "detailsPending" ${lock}`,
    [id],
  );
  return rows[0]?.version;
}

/** Returns whether the database has taken the record. */
async function write(
  client: pg.PoolClient,
  kind: Kind,
  record: MirrorRecord,
  accountId: number,
): Promise<boolean> {
  let isTaken = true;
  // What the database rejects is undone, and nothing else of the transaction.
  const transaction: Transaction = async (run) => {
    await client.query('SAVEPOINT details');
    try {
      return await run(client);
    } catch (error) {
      await client.query('ROLLBACK TO SAVEPOINT details');
      throw error;
    }
  };
  await writeRecords(transaction, {
    kind,
    records: [record],
    accountId,
    onRejected() {
      isTaken = false;
    },
  });
  return isTaken;
}

function kindOf(model: DetailedModel, accountId: number): Kind {
  const { dttTemplates, dttSessions } = kindsOf(accountId);
  return model === 'DttTemplate' ? dttTemplates : dttSessions;
}
