/**
 * Fetches the details of single records: those that a client asks for before a run has read them, and those that a client has
 * changed upstream.
 */

import pMap from 'p-map';
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { DetailedModel } from '../schema/context.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { concurrency, fetchRecord } from './fetchRecord.ts';
import { kindsOf } from './kinds/kinds.ts';
import type { Kind, MirrorRecord } from './records.ts';
import { acquireSharedLock } from './sharedLock.ts';
import { removeRecords, type Transaction, writeRecords } from './writer.ts';

export interface RecordOptions {
  readonly pool: pg.Pool;
  /** A client of the upstream that sends the token of the account. */
  readonly upstream: Upstream;
  readonly accountId: number;
}

export interface DetailsOptions extends RecordOptions {
  readonly model: DetailedModel;
  readonly ids: readonly number[];
}

export interface Details {
  /**
   * Fetches the details of records by their ids, and writes them where they are still pending. If a record is being fetched
   * already, its result is shared.
   * @returns the ids of the records whose details cannot be understood, or are missing upstream: they stay pending.
   * @throws {UpstreamError} when the upstream cannot be used; what was read until then is in the mirror.
   */
  fetch(options: DetailsOptions): Promise<number[]>;
}

/** How often a record is fetched if its row changes meanwhile. */
const maxAttempts = 3;

/** What fetching the details of a record has come to. A missing record may be there again in a moment: the next run finds out. */
type FetchResult = 'settled' | 'missing' | 'unusable';

async function fetchOne(
  options: RecordOptions,
  kind: Kind,
  id: number,
  attempts = maxAttempts,
): Promise<FetchResult> {
  const { pool, upstream, accountId } = options;
  const before = await readVersion(pool, kind, id);
  if (before === undefined) return 'settled';
  const fetched = await fetchRecord(upstream, kind, id);
  if (fetched === undefined) return 'missing';
  if (typeof fetched !== 'object') return 'unusable';
  const result = await inTransaction(pool, async (client) => {
    if (kind.table === 'DttTemplate') await acquireSharedLock(client);
    // The details may have been written meanwhile, or the record removed: this write holds no lease.
    const version = await readVersion(client, kind, id, 'FOR UPDATE');
    if (version === undefined) return 'settled';
    // A list that was read meanwhile may have written something newer.
    if (version !== before) return 'outdated';
    return (await write(client, kind, fetched, accountId)) ? 'settled' : 'unusable';
  });
  if (result !== 'outdated') return result;
  return attempts > 1 ? fetchOne(options, kind, id, attempts - 1) : 'unusable';
}

/** Marks the details of a session as pending, since a client has changed the session upstream. */
export async function noteChanged(pool: pg.Pool, accountId: number, id: number): Promise<void> {
  // A row whose details are pending already is written too: its new version makes details outdated that were asked for before. The
  // digest becomes one that no list has, since what the list said before the write says nothing about the session as it is now.
  await pool.query(
    `UPDATE "DttSession" SET "detailsPending" = true, "listedDigest" = '' WHERE id = $1 AND "ownerId" = $2`,
    [id, accountId],
  );
}

/**
 * Reads a session whose details are pending, and removes it if the client has deleted it.
 * @param isDeleted whether the client has deleted it. Otherwise a session that is missing upstream is not removed: the token may
 * have become another account's.
 * @throws {UpstreamError} when the upstream cannot be used.
 */
export async function readAgain(options: RecordOptions, id: number, isDeleted: boolean): Promise<void> {
  const { pool, accountId } = options;
  const kind = kindOf('DttSession', accountId);
  if ((await fetchOne(options, kind, id)) !== 'missing' || !isDeleted) return;
  await inTransaction(pool, (client) => removeRecords(client, kind, [id], accountId));
}

/** Creates the details of a gateway. There is one for all of its requests, so that no two of them fetch the same record. */
export function createDetails(): Details {
  const underWay = new Map<string, Promise<FetchResult>>();

  return {
    async fetch(options) {
      const { accountId, model, ids } = options;
      const kind = kindOf(model, accountId);
      const results = await pMap(
        ids,
        (id) => {
          // Two accounts that see the same template send different tokens.
          const key = `${accountId} ${model} ${id}`;
          const known = underWay.get(key);
          if (known) return known;
          const result = fetchOne(options, kind, id).finally(() => underWay.delete(key));
          underWay.set(key, result);
          return result;
        },
        { concurrency },
      );
      return ids.filter((_id, index) => results[index] !== 'settled');
    },
  };
}

/** The version of a record's row, or undefined if its details are not pending. */
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

/** Writes a record. Returns false if the database rejects it. */
async function write(
  client: pg.PoolClient,
  kind: Kind,
  record: MirrorRecord,
  accountId: number,
): Promise<boolean> {
  let isTaken = true;
  // If the database rejects the record, the rest of the transaction goes on.
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
