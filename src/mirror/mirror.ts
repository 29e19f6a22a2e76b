/**
 * The mirror: an account's records in Dovetail's own database, under the ids they have upstream. Each write is
 * one transaction, so that a run that is cut off anywhere leaves nothing half-written.
 */

import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { SetupError } from '../errors.ts';
import type { Kind, MirrorRecord, Row } from './records.ts';

/**
 * Owner of what the account refers to but cannot read, such as a deleted trainer: such rows keep the references
 * whole, and nobody sees them. Ids of the interface start at 1.
 */
const nobody = 0;

/** A user who is known by nothing but their id, as the owner of an imported template. */
const nameOfOtherUser = 'upstream-user-';

export interface Counts {
  created: number;
  updated: number;
  unchanged: number;
}

/** Told of each record that the database does not take, with the reason. */
export type OnRejected = (record: MirrorRecord, reason: string) => void;

export interface Mirror {
  /** Whether the mirror is known to have every session behind its newest. */
  readonly sessionsComplete: boolean;
  writeUser(user: Row): Promise<Counts>;
  /** The ids of those records that the mirror does not have, or has otherwise, in the fields that they have. */
  differing(kind: Kind, records: readonly MirrorRecord[]): Promise<Set<number>>;
  /** @throws {SetupError} when another run has taken over. */
  write(kind: Kind, records: readonly MirrorRecord[], onRejected: OnRejected): Promise<Counts>;
  /** The ids of all records of the kind that the account can read. */
  ids(kind: Kind): Promise<number[]>;
  remove(kind: Kind, ids: readonly number[]): Promise<void>;
  activeTemplate(): Promise<number | null>;
  /** Points the account at its active template, unless it no longer points at `before`: an activation came between. */
  setActiveTemplate(id: number | null, before: number | null): Promise<boolean>;
  /** Ties the active lock session to the template that it was started from. */
  setActiveLockTemplate(id: number | null): Promise<boolean>;
  setSessionsComplete(complete: boolean): Promise<void>;
  /** Lets other runs write. */
  release(): Promise<void>;
}

export interface MirrorOptions {
  readonly pool: pg.Pool;
  readonly source: string;
  readonly account: Row;
  /** How long, in milliseconds, a run that is not heard of keeps others out. */
  readonly lease?: number;
}

/**
 * Opens the mirror for one run, or returns undefined while another run writes.
 * @throws {SetupError} for a database that holds anything else than a mirror of this account.
 */
export async function openMirror(options: MirrorOptions): Promise<Mirror | undefined> {
  const { pool, source, account, lease = 30_000 } = options;
  const holder = randomUUID();
  const held = await inTransaction(pool, async (client) => {
    // Two first runs at once would both find the database empty.
    await client.query('LOCK TABLE "Mirror" IN EXCLUSIVE MODE');
    const mirror = await checkMirror(client, source);
    if (!mirror) {
      await addOtherUser(client, nobody);
      await upsert(client, 'User', [account]);
      await client.query('INSERT INTO "Mirror" (source, "userId") VALUES ($1, $2)', [source, account.id]);
    } else if (mirror.userId !== account.id) {
      throw new SetupError(
        `The database mirrors user ${mirror.userId}, but the token is that of user ${account.id}. ${ownDatabase}`,
      );
    }
    const { rows } = await client.query<{ sessionsComplete: boolean }>(
      `UPDATE "Mirror" SET "heldBy" = $1, "heldUntil" = now() + $2 * interval '1 ms'
       WHERE "heldUntil" IS NULL OR "heldUntil" < now() RETURNING "sessionsComplete"`,
      [holder, lease],
    );
    return rows[0] && { ...rows[0], isNew: !mirror };
  });
  if (!held) return undefined;

  const prolong = (client: pg.Pool | pg.PoolClient) =>
    client.query(`UPDATE "Mirror" SET "heldUntil" = now() + $2 * interval '1 ms' WHERE "heldBy" = $1`, [
      holder,
      lease,
    ]);
  const heartbeat = setInterval(() => prolong(pool).catch(() => {}), lease / 3).unref();

  /** A transaction in which only the run that holds the mirror can write. */
  const asHolder = <T>(run: (client: pg.PoolClient) => Promise<T>) =>
    inTransaction(pool, async (client) => {
      const { rowCount } = await prolong(client);
      if (rowCount === 0) throw new SetupError('Another run has taken over the mirror.');
      return run(client);
    });

  const changeOne = async (sql: string, values: unknown[]) =>
    asHolder(async (client) => ((await client.query(sql, values)).rowCount ?? 0) > 0);

  return {
    sessionsComplete: held.sessionsComplete,

    writeUser: (user) =>
      asHolder(async (client) => {
        const differing = await findDiffering(client, { table: 'User' }, [{ row: user }]);
        if (differing.size > 0) await upsert(client, 'User', [user]);
        const created = held.isNew ? 1 : 0;
        return { created, updated: differing.size, unchanged: 1 - created - differing.size };
      }),

    differing: (kind, records) =>
      findDiffering(pool, kind, records).catch((error: unknown) => {
        if (!isAboutData(error)) throw error;
        // Which record the database does not take is found out when each is written.
        return new Set(records.map(({ row }) => row.id));
      }),

    write: (kind, records, onRejected) => writeRecords(asHolder, kind, records, account.id, onRejected),

    async ids({ table }) {
      const { rows } = await pool.query<{ id: number }>(`SELECT id FROM "${table}" WHERE "ownerId" <> $1`, [
        nobody,
      ]);
      return rows.map(({ id }) => id);
    },

    remove: (kind, ids) => asHolder((client) => removeRecords(client, kind, ids)),

    async activeTemplate() {
      const { rows } = await pool.query<{ id: number | null }>(
        'SELECT "activeTemplateId" AS id FROM "User" WHERE id = $1',
        [account.id],
      );
      return rows[0]?.id ?? null;
    },

    setActiveTemplate: (id, before) =>
      changeOne(
        `UPDATE "User" SET "activeTemplateId" = $2 WHERE id = $1 AND "activeTemplateId" IS NOT DISTINCT FROM $3
         AND "activeTemplateId" IS DISTINCT FROM $2 AND ($2::int IS NULL OR EXISTS (SELECT FROM "DttTemplate" WHERE id = $2))`,
        [account.id, id, before],
      ),

    setActiveLockTemplate: (id) =>
      changeOne(
        `UPDATE "LockSession" SET "templateId" = $2 WHERE "ownerId" = $1 AND "isActive"
         AND "templateId" IS DISTINCT FROM $2 AND ($2::int IS NULL OR EXISTS (SELECT FROM "LockTemplate" WHERE id = $2))`,
        [account.id, id],
      ),

    async setSessionsComplete(complete) {
      await changeOne('UPDATE "Mirror" SET "sessionsComplete" = $1', [complete]);
    },

    async release() {
      clearInterval(heartbeat);
      // A database that is away then does not change how the run ended: the lease runs out by itself.
      await pool
        .query('UPDATE "Mirror" SET "heldBy" = NULL, "heldUntil" = NULL WHERE "heldBy" = $1', [holder])
        .catch(() => {});
    },
  };
}

const ownDatabase =
  'A mirror needs a database of its own: set DATA_DIR to an empty folder, or DATABASE_URL to an empty database.';

/**
 * What the database is a mirror of, or undefined for an empty one.
 * @throws {SetupError} when it holds other data, or mirrors another source.
 */
export async function checkMirror(
  client: pg.Pool | pg.PoolClient,
  source: string,
): Promise<{ userId: number } | undefined> {
  const mirrors = await client.query<{ source: string; userId: number }>(
    'SELECT source, "userId" FROM "Mirror"',
  );
  const mirror = mirrors.rows[0];
  if (mirror && mirror.source !== source) {
    throw new SetupError(`The database mirrors ${mirror.source}, not ${source}. ${ownDatabase}`);
  }
  const others = await client.query<{ username: string }>(
    'SELECT username FROM "User" WHERE id <> $1 AND username <> $2::text || id ORDER BY id LIMIT 1',
    [mirror?.userId ?? nobody, nameOfOtherUser],
  );
  const other = others.rows[0];
  if (other) {
    throw new SetupError(
      `The database holds the account ${JSON.stringify(other.username)}, whose records could have the same ids as those upstream. ${ownDatabase}`,
    );
  }
  return mirror;
}

/** The user whom the database mirrors, if it is a mirror. */
export async function mirroredUser(pool: pg.Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ userId: number }>('SELECT "userId" FROM "Mirror"');
  return rows[0]?.userId;
}

type Transaction = <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>;

export const transactionOn =
  (pool: pg.Pool): Transaction =>
  (run) =>
    inTransaction(pool, run);

/**
 * Writes the records in one transaction. If the database rejects any of them, such as for an identifier that
 * another record has, each gets a transaction of its own, so that one bad record does not keep out the others.
 */
export async function writeRecords(
  transaction: Transaction,
  kind: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
  onRejected: OnRejected,
): Promise<Counts> {
  if (records.length === 0) return { created: 0, updated: 0, unchanged: 0 };
  try {
    return await transaction((client) => replaceRecords(client, kind, records, accountId));
  } catch (error) {
    if (!isAboutData(error)) throw error;
    const [record, ...others] = records;
    if (record && others.length === 0) {
      onRejected(record, error.detail ?? error.message);
      return { created: 0, updated: 0, unchanged: 0 };
    }
  }
  const total = { created: 0, updated: 0, unchanged: 0 };
  for (const record of records) {
    add(total, await writeRecords(transaction, kind, [record], accountId, onRejected));
  }
  return total;
}

export function add(total: Counts, { created, updated, unchanged }: Counts): void {
  total.created += created;
  total.updated += updated;
  total.unchanged += unchanged;
}

/** Whether the database found fault with a value: the classes 21, 22 and 23 (PostgreSQL, "Error Codes"). */
function isAboutData(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^2[123]/.test(error.code ?? '');
}

async function replaceRecords(
  client: pg.PoolClient,
  kind: Kind,
  records: readonly MirrorRecord[],
  accountId: number,
): Promise<Counts> {
  const differing = await findDiffering(client, kind, records);
  const changed = records.filter(({ row }) => differing.has(row.id));
  if (changed.length === 0) return { created: 0, updated: 0, unchanged: records.length };
  const ids = changed.map(({ row }) => row.id);
  const rows = changed.map(({ row }) => row);
  const held = await client.query(`SELECT id FROM "${kind.table}" WHERE id = ANY($1) AND "ownerId" <> $2`, [
    ids,
    nobody,
  ]);

  if (kind.table === 'DttTemplate') {
    for (const ownerId of new Set(rows.map((row) => Number(row.ownerId)))) {
      if (ownerId !== accountId) await addOtherUser(client, ownerId);
    }
  }
  if (kind.table === 'DttSession') await addUnreadable(client, rows);
  if (kind.table === 'LockSession') await makeRoomForActive(client, rows, accountId);

  await upsert(client, kind.table, rows);
  if (kind.table === 'DttTemplate') await updateImports(client, ids, accountId);
  if (kind.children) {
    const { table, parent } = kind.children;
    await client.query(`DELETE FROM "${table}" WHERE "${parent}" = ANY($1)`, [ids]);
    // A plain insert: an id that a segment of another record has must not be taken from it.
    await insert(
      client,
      table,
      changed.flatMap(({ children = [] }) => children),
    );
  }

  const updated = held.rowCount ?? 0;
  return { created: changed.length - updated, updated, unchanged: records.length - changed.length };
}

async function findDiffering(
  client: pg.Pool | pg.PoolClient,
  { table, children }: Pick<Kind, 'children'> & { table: string },
  records: readonly MirrorRecord[],
): Promise<Set<number>> {
  const differing = new Set<number>();
  for (const [columns, rows] of alike(records.map(({ row }) => row))) {
    const { rows: found } = await client.query<{ id: number }>(
      `SELECT given.id FROM json_populate_recordset(NULL::"${table}", $1) AS given
       LEFT JOIN "${table}" AS held ON held.id = given.id
       WHERE ROW(${list(columns, 'given')}) IS DISTINCT FROM ROW(${list(columns, 'held')})`,
      [JSON.stringify(rows)],
    );
    for (const { id } of found) differing.add(id);
  }
  const families = records.filter((record) => record.children !== undefined);
  if (children && families.length > 0) {
    const rows = families.flatMap((record) => record.children ?? []);
    const columns = list(columnsOf(rows, ['id', children.parent]));
    const { rows: found } = await client.query<{ id: number }>(
      `WITH given AS (SELECT ${columns} FROM json_populate_recordset(NULL::"${children.table}", $1)),
            held AS (SELECT ${columns} FROM "${children.table}" WHERE "${children.parent}" = ANY($2))
       SELECT DISTINCT "${children.parent}" AS id
       FROM ((TABLE given EXCEPT TABLE held) UNION ALL (TABLE held EXCEPT TABLE given)) AS changed`,
      [JSON.stringify(rows), families.map(({ row }) => row.id)],
    );
    for (const { id } of found) differing.add(id);
  }
  return differing;
}

/** Adds or changes rows, each in the columns that it has. */
async function upsert(client: pg.PoolClient, table: string, rows: readonly Row[]): Promise<void> {
  for (const [columns, group] of alike(rows)) {
    const changes = columns
      .filter((column) => column !== 'id')
      .map((column) => `"${column}" = EXCLUDED."${column}"`);
    await insert(client, table, group, `ON CONFLICT (id) DO UPDATE SET ${changes}`);
  }
}

async function insert(
  client: pg.PoolClient,
  table: string,
  rows: readonly Row[],
  onConflict = '',
): Promise<void> {
  if (rows.length === 0) return;
  const columns = list(columnsOf(rows));
  await client.query(
    `INSERT INTO "${table}" (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::"${table}", $1) ${onConflict}`,
    [JSON.stringify(rows)],
  );
  await skipIds(client, table);
}

/** Keeps the ids that the database gives out clear of those that came from upstream. */
async function skipIds(client: pg.PoolClient, table: string): Promise<void> {
  await client.query(
    `SELECT setval(pg_get_serial_sequence('"${table}"', 'id'), greatest(max(id), 1)) FROM "${table}"`,
  );
}

/** Groups rows by the columns that they have. */
function alike(rows: readonly Row[]): Iterable<[string[], Row[]]> {
  const groups = new Map<string, [string[], Row[]]>();
  for (const row of rows) {
    const columns = columnsOf([row]);
    const key = columns.join();
    const group = groups.get(key);
    if (group) group[1].push(row);
    else groups.set(key, [columns, [row]]);
  }
  return groups.values();
}

function columnsOf(rows: readonly Row[], always: readonly string[] = []): string[] {
  const columns = new Set(always);
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) if (value !== undefined) columns.add(column);
  }
  return [...columns];
}

/** Column names come from the schemas in `records.ts`, never from an upstream. */
function list(columns: readonly string[], table?: string): string {
  return columns.map((column) => `${table ? `${table}.` : ''}"${column}"`).join(', ');
}

async function addOtherUser(client: pg.PoolClient, id: number): Promise<void> {
  await client.query(
    'INSERT INTO "User" (id, username) VALUES ($1::int, $2::text || $1::int) ON CONFLICT DO NOTHING',
    [id, nameOfOtherUser],
  );
  await skipIds(client, 'User');
}

/** Adds what the sessions refer to and the account cannot read, so that the references hold. */
async function addUnreadable(client: pg.PoolClient, sessions: readonly Row[]): Promise<void> {
  await client.query(
    `INSERT INTO "DttDevice" (id, "bubbleId", "ownerId", "macAddress")
     SELECT id, 'upstream-dtt-' || id, $2, '' FROM unnest($1::int[]) AS id ON CONFLICT DO NOTHING`,
    [unique(sessions.map((row) => row.trainerId)), nobody],
  );
  await client.query(
    `INSERT INTO "DttTemplate" (id, "bubbleId", "ownerId", name, "targetDepth", "targetWindow")
     SELECT id, 'upstream-template-' || id, $2, '', 0, 0 FROM unnest($1::int[]) AS id ON CONFLICT DO NOTHING`,
    [unique(sessions.map((row) => row.templateId)), nobody],
  );
  await skipIds(client, 'DttDevice');
  await skipIds(client, 'DttTemplate');
}

const unique = (values: readonly unknown[]) => [...new Set(values)].filter((value) => value != null);

/** At most one lock session is active, and the index that says so looks at every single row as it is written. */
async function makeRoomForActive(
  client: pg.PoolClient,
  rows: readonly Row[],
  accountId: number,
): Promise<void> {
  const active = rows.filter((row) => row.isActive).map(({ id }) => id);
  if (active.length === 0) return;
  await client.query(
    'UPDATE "LockSession" SET "isActive" = false WHERE "ownerId" = $1 AND "isActive" AND id <> ALL ($2)',
    [accountId, active],
  );
}

/** A template of somebody else that the account can read is one that it has imported. */
async function updateImports(
  client: pg.PoolClient,
  ids: readonly number[],
  accountId: number,
): Promise<void> {
  await client.query(
    `INSERT INTO "DttTemplateImport" ("userId", "templateId")
     SELECT $2, id FROM "DttTemplate" WHERE id = ANY($1) AND "ownerId" <> $2 ON CONFLICT DO NOTHING`,
    [ids, accountId],
  );
  await client.query(
    `DELETE FROM "DttTemplateImport" USING "DttTemplate"
     WHERE "templateId" = "DttTemplate".id AND id = ANY($1) AND "ownerId" = $2`,
    [ids, accountId],
  );
}

async function removeRecords(client: pg.PoolClient, { table }: Kind, ids: readonly number[]): Promise<void> {
  // Sessions keep naming the trainer and the template that they were done with, as they do upstream.
  if (table === 'DttDevice') {
    await client.query(
      `UPDATE "DttDevice" SET "ownerId" = $2, "bubbleId" = 'upstream-dtt-' || id, "macAddress" = '', "serialNumber" = NULL
       WHERE id = ANY($1) AND EXISTS (SELECT FROM "DttSession" WHERE "trainerId" = "DttDevice".id)`,
      [ids, nobody],
    );
  }
  if (table === 'DttTemplate') {
    // In the order in which an activation locks them.
    await client.query('SELECT FROM "DttTemplate" WHERE id = ANY($1) FOR UPDATE', [ids]);
    await client.query('UPDATE "User" SET "activeTemplateId" = NULL WHERE "activeTemplateId" = ANY($1)', [
      ids,
    ]);
    await client.query('DELETE FROM "DttTemplateImport" WHERE "templateId" = ANY($1)', [ids]);
    await client.query(
      `UPDATE "DttTemplate" SET "ownerId" = $2, "bubbleId" = 'upstream-template-' || id, name = '', description = NULL,
         tagline = NULL, message = NULL
       WHERE id = ANY($1) AND EXISTS (SELECT FROM "DttSession" WHERE "templateId" = "DttTemplate".id)`,
      [ids, nobody],
    );
  }
  await client.query(`DELETE FROM "${table}" WHERE id = ANY($1) AND "ownerId" <> $2`, [ids, nobody]);
}
