/**
 * Chooses how a database announces changes: by NOTIFY, or by messages in its log. The choice depends on the setting CHANGE_FEED, the
 * server and the role. `announce_by` in the migrations explains why switching works this way.
 */

import pg from 'pg';
import { announcedTables } from '../../database/models.ts';
import { createSession, isUnresponsive } from '../../database/session.ts';
import { errorText, SetupError, systemCodeOf } from '../../errors.ts';
import type { Diagnosis } from '../../extensionPoints.ts';
import { guideFile } from '../../root.ts';
import { newSlot } from './log.ts';

interface FeedSetup {
  /** `both` while the owner of the database switches it back to NOTIFY by hand. */
  readonly mode: 'notify' | 'logical' | 'both';
  /** The server's setting. With any other than `logical` everything is announced by NOTIFY. */
  readonly walLevel: string;
  /** The role of the connection, and whether it owns the function `announce`, and so may switch the mode. */
  readonly role: string;
  readonly owns: boolean;
  /** Whether the publication exists that a slot is read with, and whether the role may create it. */
  readonly isPublished: boolean;
  readonly mayPublish: boolean;
}

/** The advisory lock under which one gateway at a time switches the mode. `announce_by` takes it as well. */
const switchLock = 0xd07e7a12;

/**
 * How long, in milliseconds, a switch to NOTIFY may wait for writers. It has to be less than the usual `deadlock_timeout`, so that
 * in a deadlock with a writer the switch fails, and not the writer.
 */
const longestLocking = 500;

/** How long, in milliseconds, to wait for a trial slot. The server creates it only after running writers have ended. */
const longestTrial = 3_000;

/** The resulting mode, and the reason if it is not the wanted one. */
interface ChosenMode {
  readonly mode: FeedSetup['mode'];
  readonly why?: string;
}

/**
 * Switches the database to the wanted mode. `auto` leaves it as it is, unless it announces by NOTIFY and messages can be read.
 * @throws {SetupError} if the wanted mode is not possible.
 */
export async function chooseAnnounceMode(
  wanted: 'auto' | 'notify' | 'logical',
  direct: pg.ClientConfig,
): Promise<ChosenMode> {
  const { client, connect, close } = createSession(direct);
  try {
    await connect();
    const setup = await readFeedSetup(client);
    if (wanted === 'notify') return await switchToNotify(client, setup);
    if (wanted === 'auto' && setup.mode !== 'notify') return { mode: setup.mode };
    const problem = findSetupProblem(setup) ?? (await checkReplicationSlot(direct));
    if (problem) throw new Error(`${problem.says}. ${problem.advice}`);
    await switchTo(client, 'logical');
    return { mode: 'logical' };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    const why = errorText(error);
    if (wanted === 'auto') return { mode: 'notify', why };
    throw new SetupError(`CHANGE_FEED is ${wanted}, which is not available: ${why}`);
  } finally {
    await close();
  }
}

export async function readFeedSetup(client: pg.ClientBase): Promise<FeedSetup> {
  const { rows } = await client.query<FeedSetup>(
    `SELECT substring(prosrc FROM 'WHEN ''logical'' THEN ''(\\w+)''') AS mode,
       current_setting('wal_level') AS "walLevel", current_user AS role, pg_has_role(proowner, 'USAGE') AS owns,
       EXISTS (SELECT FROM pg_publication WHERE pubname = 'dovetail') AS "isPublished",
       has_database_privilege(current_database(), 'CREATE') AS "mayPublish"
     FROM pg_proc WHERE oid = to_regprocedure('announce(text)')`,
  );
  const [setup] = rows;
  if (!setup) throw new Error('there is no function announce(text)');
  return setup;
}

/** The reason, as far as the setup shows it, why changes cannot be announced by messages. */
function findSetupProblem(setup: FeedSetup): Diagnosis | undefined {
  const { walLevel, mode, isPublished, mayPublish, owns, role } = setup;
  if (walLevel !== 'logical')
    return {
      says: `the server has wal_level = ${walLevel}`,
      advice: 'Set wal_level = logical in its settings and start it again.',
    };
  if (isPublished ? mode === 'logical' || owns : mayPublish && owns) return undefined;
  return {
    says: `the role ${JSON.stringify(role)} ${owns ? 'may not create the publication that the messages are read with' : 'does not own the function announce, and cannot switch the database'}`,
    advice: `As a role that may: CREATE PUBLICATION dovetail; SELECT announce_by('logical');`,
  };
}

/** The requirements of a slot, for errors without a hint of PostgreSQL. */
const slotNeeds = `The role needs REPLICATION, pg_hba.conf has to let it replicate, max_wal_senders and max_replication_slots have to be large enough, and no pooler may stand in between: see ${guideFile('deployment.md#by-messages-in-the-log')}.`;

/** Tries to create a slot. Returns undefined if that succeeds, or only has to wait for writing transactions. */
export async function checkReplicationSlot(direct: pg.ClientConfig): Promise<Diagnosis | undefined> {
  // The types of `pg` do not have the parameter, which it passes on.
  const config: pg.ClientConfig & { replication: 'database' } = { ...direct, replication: 'database' };
  const { client, connect, close } = createSession(config, longestTrial);
  try {
    await connect();
    await client.query(newSlot().create);
    return undefined;
  } catch (error) {
    if (isUnresponsive(error)) return undefined;
    const { detail, hint } = error instanceof pg.DatabaseError ? error : {};
    return { says: errorText(error), advice: hint ?? detail ?? slotNeeds };
  } finally {
    await close();
  }
}

async function switchToNotify(client: pg.ClientBase, { mode, owns, role }: FeedSetup): Promise<ChosenMode> {
  if (mode === 'notify') return { mode };
  if (!owns)
    throw new SetupError(
      `CHANGE_FEED is notify, but the database is switched to messages, and the role ${JSON.stringify(role)} does not own the function announce. As its owner: SELECT announce_by('both'); and, once all have ended that write by then, SELECT announce_by('notify');`,
    );
  try {
    await switchTo(client, 'notify');
    return { mode: 'notify' };
  } catch (error) {
    if (systemCodeOf(error) !== '57014') throw error;
    return { mode, why: 'somebody writes who began before; the next start looks again' };
  }
}

/** Switches the mode, unless another gateway has done so meanwhile. Gateways are told, and reconnect. After an error, close the client. */
async function switchTo(client: pg.ClientBase, wanted: 'notify' | 'logical'): Promise<void> {
  // Stated, since the role may have other defaults.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  await client.query(`SELECT pg_advisory_xact_lock(${switchLock})`);
  const { mode, isPublished } = await readFeedSetup(client);
  // After a switch to NOTIFY no gateway reads messages, so the switch waits for all transactions that may still send one.
  if (wanted === 'notify') {
    await client.query(`SET LOCAL statement_timeout = ${longestLocking}`);
    await client.query(`LOCK TABLE "${announcedTables.join('", "')}" IN SHARE MODE`);
  } else if (!isPublished) await client.query('CREATE PUBLICATION dovetail');
  if (mode !== wanted) await client.query('SELECT announce_by($1)', [wanted]);
  await client.query('COMMIT');
}
