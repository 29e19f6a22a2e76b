/**
 * Writes to the database without a gateway. Every row under test counts its own changes in a column that responses show, so
 * that "older" is "less". Triggers of the test, which fire after the announcing ones, announce the count in the same way:
 * when a gateway's feed delivers the count, the gateway has processed the announcement of that very change.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Account } from '../support/accounts.ts';
import type { Counts } from './floor.ts';

/** The test announces counts for this user, which does not exist: the table of such an announcement is `<table>:<id>:<count>`. */
export const marker = 0;

type Client = Pick<pg.ClientBase, 'query'>;

/** The column that counts, by table. */
const counted = {
  User: 'rank',
  DttTemplate: 'name',
  DttTemplateSegment: 'repeat',
  DttSession: 'name',
  TrainerSegment: 'points',
} as const;

export type Table = keyof typeof counted;
// `Object.keys` does not know that these are all the keys there are.
export const tables = Object.keys(counted) as Table[];

const marks = tables.map(
  (table) => `
  CREATE TRIGGER mark AFTER UPDATE ON "${table}" REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark('${counted[table]}');`,
);

/** Has the rows count their changes. Rows that exist at the start have their first version then. */
export const preparation = `
  CREATE TABLE history (register text, version int, value int);

  CREATE FUNCTION count_user() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.rank := OLD.rank + 1;
    INSERT INTO public.history VALUES ('User ' || NEW.id, NEW.rank, coalesce(NEW."activeTemplateId", 0));
    RETURN NEW;
  END $$;
  CREATE TRIGGER count_user BEFORE UPDATE ON "User" FOR EACH ROW EXECUTE FUNCTION count_user();

  CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('SELECT public.announce(''${marker} %s:'' || id || '':'' || %s) FROM changed', TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
  END $$;
  ${marks.join('')}

  UPDATE "DttTemplate" SET name = '0';
  UPDATE "DttTemplateSegment" SET repeat = 0;
  UPDATE "DttSession" SET name = '0';
  UPDATE "TrainerSegment" SET points = 0;`;

/** Changes a row of the account, which raises its count. */
export async function write(client: Client, account: Account, table: Table): Promise<Counts> {
  const first = (parent: string) => `(SELECT min(id) FROM public."${table}" WHERE "${parent}" = $1)`;
  const [set, row, id] = {
    // A trigger counts these, since activations have to count as well.
    User: ['rank = rank', '$1', account.userId] as const,
    DttTemplate: ['name = (name::int + 1)::text', '$1', account.dttTemplates[0]] as const,
    DttTemplateSegment: ['repeat = repeat + 1', first('templateId'), account.dttTemplates[0]] as const,
    DttSession: ['name = (name::int + 1)::text', '$1', account.dttSessions[0]] as const,
    TrainerSegment: ['points = points + 1', first('sessionId'), account.dttSessions[0]] as const,
  }[table];
  const { rows } = await client.query<{ id: number; count: number }>(
    `UPDATE public."${table}" SET ${set} WHERE id = ${row} RETURNING id, ${counted[table]}::int AS count`,
    [id],
  );
  return rows.map(({ id, count }) => [`${table} ${id}`, count]);
}

export const levels = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;

export interface Holding {
  readonly level: (typeof levels)[number];
  /** How long, in milliseconds, the transaction is open before the write, with its snapshot taken, and after it. */
  readonly before: number;
  readonly after: number;
}

/** Acts in a transaction that is held open. If it fails because of a conflict with another one, it returns no counts. */
export async function hold(
  pool: pg.Pool,
  { level, before, after }: Holding,
  act: (client: pg.ClientBase) => Promise<Counts>,
): Promise<Counts> {
  const client = await pool.connect();
  try {
    await client.query(`BEGIN ISOLATION LEVEL ${level}`);
    if (before > 0) {
      await client.query('SELECT count(*) FROM public."DttLibraryEntry"');
      await sleep(before);
    }
    const counts = await act(client);
    if (after > 0) await sleep(after);
    await client.query('COMMIT');
    return counts;
  } catch (error) {
    await client.query('ROLLBACK');
    return ignoreConflict(error);
  } finally {
    client.release();
  }
}

/** A serialization failure, or a deadlock: nothing was written. */
function ignoreConflict(error: unknown): Counts {
  if (error instanceof Error && 'code' in error && /^40/.test(String(error.code))) return [];
  throw error;
}

export type Way = 'notify' | 'logical' | 'both';

/** Has the database announce changes in another way. */
export async function announceBy(pool: pg.Pool, way: Way): Promise<void> {
  await pool.query('SELECT announce_by($1)', [way]);
}

let lagging: Promise<unknown> = Promise.resolve();

/**
 * Delays the visibility of commits for so many milliseconds: they are in the log, and wait for a synchronous standby that does
 * not exist. One lag at a time.
 */
export function lag(pool: pg.Pool, milliseconds: number): Promise<unknown> {
  lagging = lagging.then(async () => {
    await pool.query(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
    await pool.query('SELECT pg_reload_conf()');
    await sleep(milliseconds);
    await pool.query('ALTER SYSTEM RESET synchronous_standby_names');
    await pool.query('SELECT pg_reload_conf()');
  });
  return lagging;
}

/** Terminates all connections that read the log. */
export async function endReaders(pool: pg.Pool): Promise<void> {
  await pool.query(
    `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database()`,
  );
}
