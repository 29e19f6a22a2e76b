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

/** Tables without references to them, which can be emptied and filled again. */
export const leaves = ['DttTemplateSegment', 'TrainerSegment'] as const;

const marks = tables.map(
  (table) => `
  CREATE TRIGGER mark AFTER UPDATE ON "${table}" REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark('${counted[table]}');
  CREATE TRIGGER mark_insert AFTER INSERT ON "${table}" REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark('${counted[table]}');
  ALTER TABLE "${table}" ENABLE ALWAYS TRIGGER mark;
  ALTER TABLE "${table}" ENABLE ALWAYS TRIGGER mark_insert;`,
);

/** Has the rows count their changes. Rows that exist at the start have their first version then. */
export const preparation = `
  CREATE TABLE history (register text, version int, value int);
  CREATE TABLE imports (user_id int, template_id int, version int, PRIMARY KEY (user_id, template_id));

  CREATE FUNCTION count_user() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.rank := OLD.rank + 1;
    INSERT INTO public.history VALUES ('User ' || NEW.id, NEW.rank, coalesce(NEW."activeTemplateId", 0));
    RETURN NEW;
  END $$;
  CREATE TRIGGER count_user BEFORE UPDATE ON "User" FOR EACH ROW EXECUTE FUNCTION count_user();
  ALTER TABLE "User" ENABLE ALWAYS TRIGGER count_user;

  CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    EXECUTE format('SELECT public.announce(''${marker} %s:'' || id || '':'' || %s) FROM changed', TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
  END $$;
  ${marks.join('')}

  -- Per statement, and after the announcement, which is per statement as well.
  CREATE FUNCTION mark_import() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
    one record;
    counted int;
  BEGIN
    FOR one IN SELECT * FROM changed LOOP
      INSERT INTO public.imports VALUES (one."userId", one."templateId", 1)
        ON CONFLICT (user_id, template_id) DO UPDATE SET version = imports.version + 1 RETURNING version INTO counted;
      INSERT INTO public.history
        VALUES ('Import ' || one."userId" || '-' || one."templateId", counted, (TG_OP = 'INSERT')::int);
      PERFORM public.announce('${marker} Import:' || one."userId" || '-' || one."templateId" || ':' || counted);
    END LOOP;
    RETURN NULL;
  END $$;
  CREATE TRIGGER mark_insert AFTER INSERT ON "DttLibraryEntry" REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark_import();
  CREATE TRIGGER mark_delete AFTER DELETE ON "DttLibraryEntry" REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION mark_import();

  CREATE FUNCTION mark_token() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM public.announce('${marker} ApiToken:' || OLD.id || ':1');
    RETURN NULL;
  END $$;
  CREATE TRIGGER mark_update AFTER UPDATE OF "revokedAt" ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION mark_token();
  CREATE TRIGGER mark_delete AFTER DELETE ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION mark_token();

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

/** Imports a template of another account into the account's library, or removes it. */
export async function setImport(client: Client, { userId }: Account, templateId: number, wanted: boolean) {
  const { rowCount } = await client.query(
    wanted
      ? 'INSERT INTO public."DttLibraryEntry" ("userId", "templateId") VALUES ($1, $2) ON CONFLICT DO NOTHING'
      : 'DELETE FROM public."DttLibraryEntry" WHERE "userId" = $1 AND "templateId" = $2',
    [userId, templateId],
  );
  // A state that was there before may have been announced before any gateway listened.
  if (rowCount === 0) return [];
  const { rows } = await client.query<{ version: number }>(
    'SELECT version FROM public.imports WHERE user_id = $1 AND template_id = $2',
    [userId, templateId],
  );
  return rows.map(({ version }): [string, number] => [`Import ${userId}-${templateId}`, version]);
}

/** Writes as a replication or a restore does: only triggers with ENABLE ALWAYS fire. */
export async function writeAsReplica(client: Client, account: Account, table: Table): Promise<Counts> {
  await client.query("SET LOCAL session_replication_role = replica; SET LOCAL search_path = ''");
  return write(client, account, table);
}

/** Empties a table and fills it again, as a restore does, with a higher count in each row. */
export async function restore(client: pg.ClientBase, table: (typeof leaves)[number]): Promise<Counts> {
  const column = counted[table];
  await client.query(`
    LOCK TABLE public."${table}" IN ACCESS EXCLUSIVE MODE;
    SET LOCAL session_replication_role = replica;
    SET LOCAL search_path = ''`);
  const rows = await copy(
    client,
    `COPY (SELECT (jsonb_populate_record(old, jsonb_build_object('${column}', coalesce(${column}, 0) + 1))).*
           FROM public."${table}" AS old) TO STDOUT`,
  );
  await client.query(`TRUNCATE public."${table}"`);
  await copy(client, `COPY public."${table}" FROM STDIN`, rows);
  const restored = await client.query<{ id: number; count: number }>(
    `SELECT id, ${column} AS count FROM public."${table}"`,
  );
  return restored.rows.map(({ id, count }) => [`${table} ${id}`, count]);
}

/** The parts of the connection that `pg` passes to a query that is submitted to it. */
interface Wire {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** Copies rows in or out. `pg` has no COPY of its own, but lets a submitted query handle the protocol. */
function copy(client: pg.ClientBase, text: string, rows: Buffer = Buffer.alloc(0)): Promise<Buffer> {
  return new Promise((settle, fail) => {
    const chunks: Buffer[] = [];
    // The types of `pg` have such a query as Submittable, without the handlers.
    client.query({
      submit: (wire: Wire) => wire.query(text),
      handleCopyInResponse(wire: Wire) {
        if (rows.length > 0) wire.sendCopyFromChunk(rows);
        wire.endCopyFrom();
      },
      handleCopyData: ({ chunk }: { chunk: Buffer }) => chunks.push(Buffer.from(chunk)),
      handleCommandComplete() {},
      handleReadyForQuery: () => settle(Buffer.concat(chunks)),
      handleError: fail,
    } as unknown as pg.Submittable);
  });
}

export const levels = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;

export interface Holding {
  readonly level: (typeof levels)[number];
  /** How long, in milliseconds, the transaction is open before the write, with its snapshot taken, and after it. */
  readonly before: number;
  readonly after: number;
}

export const atOnce: Holding = { level: 'READ COMMITTED', before: 0, after: 0 };

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
