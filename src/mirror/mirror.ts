/**
 * The mirror: an account's records in Dovetail's own database, under the ids they have upstream. Each write is
 * one transaction, so that a run that is cut off anywhere leaves nothing half-written.
 */

import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import {
  changesRows,
  readActiveTemplate,
  readIds,
  readSessionsDownTo,
  readVersion,
  setActiveLockTemplate,
  setActiveTemplate,
} from './accountRows.ts';
import { holderOf, holdLease, type LeaseOptions, type Purpose, takeLease } from './lease.ts';
import { inLibrary } from './library.ts';
import { findNewInList, storeDigests } from './listed.ts';
import { noteDenied, notePending, type PendingQuery, readPending, readStillPending } from './pending.ts';
import type { WriteCounts } from './recordCounts.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';
import { findDiffering, upsert } from './rows.ts';
import { userNullUntilKnown } from './user.ts';
import { withFreeName } from './usernames.ts';
import { readVersions, type Versions } from './versions.ts';
import { isAboutData, type OnRejected, recordsAsStored, removeRecords, writeRecords } from './writer.ts';

export interface Mirror {
  /** Whether the mirror is known to have every session that is older than its newest one. */
  readonly sessionsComplete: boolean;
  writeUser(user: Row): Promise<WriteCounts>;
  /** The ids of those records that the mirror does not have, or has with another value in a field that the record has. */
  differing(kind: Kind, records: readonly MirrorRecord[]): Promise<Set<number>>;
  /** The ids of those records of which a list says something new. What is less exact there than by the id is not new. */
  newInList(kind: Kind, records: readonly MirrorRecord[]): Promise<Set<number>>;
  /** Remembers what a list says of records of which it says nothing new, for the next time that they are compared. */
  rememberListed(kind: Kind, records: readonly MirrorRecord[]): Promise<void>;
  /** The versions of the rows of records that are about to be fetched. `write` compares them to find outdated records. */
  versions(kind: Kind, ids: readonly number[]): Promise<Versions>;
  /**
   * @param asked the versions of the rows when the records were asked for, if others may have written the rows since.
   * @throws {LeaseTakenOver} when another run writes the account now.
   */
  write(
    kind: Kind,
    records: readonly MirrorRecord[],
    onRejected: OnRejected,
    asked?: Versions,
  ): Promise<WriteCounts>;
  /** The ids of the records whose details are pending, in the order in which the details are to be fetched. */
  pending(kind: Kind, query?: PendingQuery): Promise<number[]>;
  /** The ids of those records whose details are still pending. */
  stillPending(kind: Kind, ids: readonly number[]): Promise<Set<number>>;
  /** Marks the details of records as pending. */
  notePending(kind: Kind, ids: readonly number[]): Promise<void>;
  /** Marks the details of records as not pending, since the upstream does not give them to the account. */
  noteDenied(kind: Kind, ids: readonly number[]): Promise<void>;
  /** The ids of all records of the kind that the account can read. */
  ids(kind: Kind): Promise<number[]>;
  /** The ids of the account's sessions, newest first: all that are newer than the oldest of the given ones, or simply all. */
  sessionsDownTo(ids?: readonly number[]): Promise<number[]>;
  remove(kind: Kind, ids: readonly number[]): Promise<void>;
  activeTemplate(): Promise<number | null>;
  /** The version of the account's row. Every activation changes it, in whichever process. */
  version(): Promise<string>;
  /**
   * Points the account at its active template, unless the version of its row is no longer `before`: then an activation came in
   * between. If the account has no active template, the version does not matter, since it also changes when the active template
   * is deleted, or goes to another owner.
   */
  setActiveTemplate(id: number | null, before: string): Promise<boolean>;
  /** Ties the active lock session to the template that it was started from. */
  setActiveLockTemplate(id: number | null): Promise<boolean>;
  setSessionsComplete(complete: boolean): Promise<void>;
  /** Stores that a run has read all lists. @param began when the run began. */
  setRefreshed(began: Date): Promise<void>;
  /** Lets other runs write. */
  release(): Promise<void>;
}

export interface OpenMirrorOptions {
  readonly pool: pg.Pool;
  readonly source: string;
  readonly account: Row;
  /** How long, in milliseconds, the lease of a run lasts if the run does not prolong it. */
  readonly lease?: number;
  /** What the run reads: lists, unless told otherwise. */
  readonly purpose?: Purpose;
}

/**
 * Opens the mirror for one run, or returns undefined while another run writes.
 * @throws {SetupError} for a database that holds anything else than a mirror of this account.
 */
export async function openMirror(options: OpenMirrorOptions): Promise<Mirror | undefined> {
  const { pool, account, lease: duration = 30_000, purpose = 'lists' } = options;
  const leaseOptions = { userId: account.id, holder: holderOf(purpose), duration };
  const opened = await open(options, leaseOptions);
  if (!opened) return undefined;
  const { transaction, release } = holdLease(pool, leaseOptions);

  return {
    sessionsComplete: opened.sessionsComplete,
    writeUser: (user) => transaction((client) => writeUser(client, user, opened.isNew)),
    differing: (kind, records) =>
      orAll(records, async () =>
        findDiffering(pool, kind, await recordsAsStored(pool, kind, records, account.id)),
      ),
    newInList: (kind, records) => orAll(records, () => readNewInList(pool, kind, records, account.id)),
    rememberListed: (kind, records) => storeDigests(pool, transaction, kind, records),
    versions: (kind, ids) => readVersions(pool, kind, ids),
    write: (kind, records, onRejected, asked) =>
      writeRecords(transaction, { kind, records, accountId: account.id, onRejected, asked }),
    stillPending: (kind, ids) => readStillPending(pool, kind, ids),
    pending: (kind, query = {}) => readPending(pool, kind, account.id, query),
    notePending: (kind, ids) => transaction((client) => notePending(client, kind, ids)),
    noteDenied: (kind, ids) => transaction((client) => noteDenied(client, kind, ids, account.id)),
    ids: (kind) => readIds(pool, kind, account.id),
    sessionsDownTo: (ids) => readSessionsDownTo(pool, account.id, ids),
    remove: (kind, ids) => transaction((client) => removeRecords(client, kind, ids, account.id)),
    activeTemplate: () => readActiveTemplate(pool, account.id),
    version: () => readVersion(pool, account.id),
    setActiveTemplate: (id, before) => setActiveTemplate(transaction, account.id, id, before),
    setActiveLockTemplate: (id) => setActiveLockTemplate(transaction, account.id, id),
    async setSessionsComplete(complete) {
      await changesRows(
        transaction,
        'UPDATE "MirroredAccount" SET "sessionsComplete" = $1 WHERE "userId" = $2',
        [complete, account.id],
      );
    },
    async setRefreshed(began) {
      await changesRows(transaction, 'UPDATE "MirroredAccount" SET "refreshedAt" = $1 WHERE "userId" = $2', [
        began,
        account.id,
      ]);
    },
    release,
  };
}

/** Makes an empty database a mirror, or checks that it is one, adds the account to it, and takes the account's lease. */
function open({ pool, source, account }: OpenMirrorOptions, lease: LeaseOptions) {
  return inTransaction(pool, async (client) => {
    // An account that is here needs no lock on the whole table.
    const { rowCount: isHere } = await client.query(
      'SELECT FROM "Mirror" WHERE source = $1 AND EXISTS (SELECT FROM "MirroredAccount" WHERE "userId" = $2)',
      [source, account.id],
    );
    if (isHere === 1) {
      const lent = await takeLease(client, lease);
      return lent && { ...lent, isNew: false };
    }
    // Two first runs at once would both find the database empty.
    await client.query('LOCK TABLE "Mirror" IN EXCLUSIVE MODE');
    await checkMirror(client, source);
    await client.query('INSERT INTO "Mirror" (source) VALUES ($1) ON CONFLICT DO NOTHING', [source]);
    const { rowCount: known } = await client.query('SELECT FROM "MirroredAccount" WHERE "userId" = $1', [
      account.id,
    ]);
    if (known === 0) {
      await upsert(client, 'User', [await withFreeName(client, account)], userNullUntilKnown);
      await client.query('INSERT INTO "MirroredAccount" ("userId") VALUES ($1)', [account.id]);
    }
    const taken = await takeLease(client, lease);
    return taken && { ...taken, isNew: known === 0 };
  });
}

const ownDatabase =
  'A mirror needs a database of its own: set DATA_DIR to an empty folder, or DATABASE_URL to an empty database.';

/**
 * Checks that the database is a mirror of the source, or empty.
 * @throws {SetupError} when it holds other data, or mirrors another source.
 */
export async function checkMirror(client: pg.Pool | pg.PoolClient, source: string): Promise<void> {
  const { rows } = await client.query<{ source: string }>('SELECT source FROM "Mirror"');
  const [mirror] = rows;
  if (mirror && mirror.source !== source) {
    throw new SetupError(`The database mirrors ${mirror.source}, not ${source}. ${ownDatabase}`);
  }
  const others = await client.query<{ username: string }>(
    'SELECT username FROM "User" WHERE id NOT IN (SELECT "userId" FROM "MirroredAccount") ORDER BY id LIMIT 1',
  );
  const [other] = others.rows;
  if (other) {
    throw new SetupError(
      `The database holds the account ${JSON.stringify(other.username)}, whose records could have the same ids as those upstream. ${ownDatabase}`,
    );
  }
}

/** Whether a user's account lives upstream. */
export async function isMirrored(pool: pg.Pool, userId: number): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT FROM "MirroredAccount" WHERE "userId" = $1', [userId]);
  return rowCount === 1;
}

async function writeUser(client: pg.PoolClient, user: Row, isNew: boolean): Promise<WriteCounts> {
  let differing = await findDiffering(client, { table: 'User' }, [{ row: user }]);
  if (differing.size > 0) {
    const row = await withFreeName(client, user);
    differing = await findDiffering(client, { table: 'User' }, [{ row }]);
    if (differing.size > 0) await upsert(client, 'User', [row]);
  }
  const created = isNew ? 1 : 0;
  return { created, updated: differing.size, unchanged: 1 - created - differing.size };
}

async function readNewInList(
  pool: pg.Pool,
  kind: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<Set<number>> {
  const written = await recordsAsStored(pool, kind, records, accountId);
  // A kind without details: its list has all fields of a record.
  if (!kind.summary) return findDiffering(pool, kind, written);
  const isNew = await findNewInList(pool, kind, records, written);
  if (kind.table !== 'DttTemplate') return isNew;
  // A template that another account has brought here counts as new as long as it is not in this account's library.
  const ids = records.map(({ row }) => row.id);
  const known = await inLibrary(pool, ids, accountId);
  return new Set(ids.filter((id) => isNew.has(id) || !known.has(id)));
}

/** The ids that a comparison finds, or those of all records if the database rejects a value: writing finds out which. */
async function orAll(
  records: readonly MirrorRecord[],
  compare: () => Promise<Set<number>>,
): Promise<Set<number>> {
  try {
    return await compare();
  } catch (error) {
    if (!isAboutData(error)) throw error;
    return new Set(records.map(({ row }) => row.id));
  }
}
