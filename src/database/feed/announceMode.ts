/**
 * How a database announces changes: by NOTIFY, or by messages in its log. Chosen by the setting CHANGE_FEED, and by what the
 * server and the role are able to do. `announce_by` in the migrations explains why switching works this way.
 */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { type Diagnosis, errorText, SetupError, systemCodeOf } from '../../errors.ts';
import { createSession } from '../session.ts';
import { pause } from '../waiting.ts';
import { openReplication } from './slot.ts';

/** `both` during a switch back to NOTIFY. */
export type AnnounceMode = 'notify' | 'logical' | 'both';

export interface FeedSetup {
  readonly mode: AnnounceMode;
  /** Whether the server has logical decoding. Without it everything is announced by NOTIFY. */
  readonly decodes: boolean;
  /** The server's setting, and the role of the connection. */
  readonly walLevel: string;
  readonly role: string;
  /** Whether the role owns the function `announce`, and so may switch the mode. */
  readonly owns: boolean;
  /** Whether the publication exists that a slot is read with. */
  readonly isPublished: boolean;
  /** The name of the database, quoted for GRANT, if the role lacks the right to create the publication. */
  readonly lacksCreateOn: string | null;
}

/** The advisory lock under which one gateway at a time switches the mode. */
const switchLock = 0xd07e7a12;

/** How long, in milliseconds, a start waits for running writers before it switches the database back to NOTIFY. */
const longestWait = 2_000;

/** How long, in milliseconds, a slot is waited for on trial: one that can be made waits for those who write. */
const longestTrial = 3_000;

/** The mode that the database has come to, and why where it is not the one that was asked for. */
export interface ChosenMode {
  readonly mode: AnnounceMode;
  readonly why?: string;
}

/**
 * Switches the database to the mode that is wanted. `auto` leaves it as it is, unless it announces by NOTIFY and messages can be read.
 * @throws {SetupError} when the mode that is asked for cannot be had.
 */
export async function chooseAnnounceMode(
  wanted: Config['CHANGE_FEED'],
  direct: pg.ClientConfig,
): Promise<ChosenMode> {
  const { client, connect, close } = createSession(direct);
  try {
    await connect();
    const setup = await readFeedSetup(client);
    if (wanted === 'notify') return await switchToNotify(client, setup);
    if (wanted === 'auto' && setup.mode !== 'notify') return { mode: setup.mode };
    const problem = findSetupProblem(setup) ?? (await checkReplicationSlot(direct));
    if (problem && wanted === 'auto') return { mode: 'notify', why: `${problem.says}. ${problem.advice}` };
    if (problem) throw unavailable(wanted, `${problem.says}. ${problem.advice}`);
    await switchTo(client, 'logical');
    return { mode: 'logical' };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    if (wanted === 'auto') return { mode: 'notify', why: errorText(error) };
    throw unavailable(wanted, errorText(error));
  } finally {
    await close();
  }
}

const unavailable = (wanted: Config['CHANGE_FEED'], why: string) =>
  new SetupError(`CHANGE_FEED is ${wanted}, which cannot be had: ${why}`);

export async function readFeedSetup(client: pg.ClientBase): Promise<FeedSetup> {
  const { rows } = await client.query<FeedSetup>(
    `SELECT substring(prosrc FROM 'WHEN ''logical'' THEN ''(\\w+)''') AS mode,
       current_setting('wal_level') = 'logical' AS decodes, current_setting('wal_level') AS "walLevel",
       current_user AS role, pg_has_role(proowner, 'USAGE') AS owns,
       EXISTS (SELECT FROM pg_publication WHERE pubname = 'dovetail') AS "isPublished",
       CASE WHEN NOT has_database_privilege(current_database(), 'CREATE') THEN quote_ident(current_database()) END
         AS "lacksCreateOn"
     FROM pg_proc WHERE oid = to_regprocedure('announce(text)')`,
  );
  const [setup] = rows;
  if (!setup) throw new Error('there is no function announce(text)');
  return setup;
}

/** What prevents announcing by messages, as far as the setup tells. */
export function findSetupProblem(setup: FeedSetup): Diagnosis | undefined {
  const { decodes, walLevel, mode, isPublished, lacksCreateOn, owns, role } = setup;
  if (!decodes)
    return {
      says: `the server has wal_level = ${walLevel}`,
      advice: 'Set wal_level = logical in its settings and start it again.',
    };
  if (mode === 'logical' && isPublished) return undefined;
  if (owns && !isPublished && lacksCreateOn !== null)
    return {
      says: `the role ${JSON.stringify(role)} may not create the publication that the messages are read with`,
      advice: `As the owner of the database: GRANT CREATE ON DATABASE ${lacksCreateOn} TO "${role.replaceAll('"', '""')}";`,
    };
  if (owns) return undefined;
  return {
    says: `the role ${JSON.stringify(role)} does not own the function announce, and cannot switch the database`,
    advice: `As its owner: CREATE PUBLICATION dovetail; SELECT announce_by('logical');`,
  };
}

/** Tries to make a slot. Gives undefined if it can be, or could be once transactions are over that write. */
export async function checkReplicationSlot(direct: pg.ClientConfig): Promise<Diagnosis | undefined> {
  const over = new AbortController();
  try {
    const client = await openReplication(direct, over);
    const slot = `dovetail_trial_${randomBytes(8).toString('hex')}`;
    const made = client.query(
      `CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')`,
    );
    await Promise.race([made, pause(longestTrial, over.signal)]);
    made.catch(() => {});
    return undefined;
  } catch (error) {
    return { says: errorText(error), advice: adviceOn(error) };
  } finally {
    over.abort();
  }
}

const raise = (setting: string) =>
  `Raise ${setting} and start the server again: one for each standby, one for each process of a gateway, and one more for a start.`;

function adviceOn(error: unknown): string {
  const code = systemCodeOf(error);
  if (code === '42501')
    return 'Give the role the right: ALTER ROLE … REPLICATION; hosted services have a role for it to be granted, such as rds_replication.';
  if (code === '53400') return raise('max_replication_slots');
  if (code === '53300') return raise('max_wal_senders');
  if (code === '28000') return 'Let the role connect, in pg_hba.conf.';
  if (/startup parameter/.test(errorText(error)))
    return 'A pooler stands in between: name the server itself in DATABASE_DIRECT_URL.';
  return 'Look at the log of the server.';
}

async function switchToNotify(
  client: pg.ClientBase,
  { mode, owns, role, decodes }: FeedSetup,
): Promise<ChosenMode> {
  if (mode === 'notify') return { mode };
  if (!owns)
    throw new SetupError(
      `CHANGE_FEED is notify, but the database is switched to messages, and the role ${JSON.stringify(role)} does not own the function announce. As its owner: SELECT announce_by('both'); and, once all have ended that write by then, SELECT announce_by('notify');`,
    );
  // Gateways read messages until no transaction is left that may send one.
  if (decodes) await switchTo(client, 'both');
  if (decodes && !(await awaitWriters(client)))
    return { mode: 'both', why: 'somebody writes who began before; the next start looks again' };
  await switchTo(client, 'notify');
  return { mode: 'notify' };
}

/** Switches the mode, unless another gateway has done so meanwhile. Gateways are told, and reconnect. */
async function switchTo(client: pg.ClientBase, wanted: AnnounceMode): Promise<void> {
  // Stated, since the role may have other defaults.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${switchLock})`);
    const { mode, isPublished } = await readFeedSetup(client);
    if (!isPublished) await client.query('CREATE PUBLICATION dovetail');
    if (mode !== wanted) await client.query('SELECT announce_by($1)', [wanted]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Selects the transactions that write, or have written, to tables whose changes are announced. */
const writers = `
  SELECT virtualtransaction AS id FROM pg_locks
  WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND relation IN (SELECT tgrelid FROM pg_trigger WHERE tgname LIKE 'announce\\_%')
    AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`;

/** Waits for a while until all transactions that write now have ended. Returns whether they have. */
async function awaitWriters(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ id: string }>(writers);
  const begun = rows.map(({ id }) => id);
  const over = AbortSignal.timeout(longestWait);
  for (;;) {
    const left = await client.query<{ left: boolean }>(
      `SELECT EXISTS (SELECT FROM (${writers}) AS writers WHERE id = ANY ($1)) AS left`,
      [begun],
    );
    if (!left.rows[0]?.left) return true;
    if (!(await pause(20, over))) return false;
  }
}
