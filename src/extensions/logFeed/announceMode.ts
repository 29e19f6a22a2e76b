/**
 * Chooses how a database announces changes: by NOTIFY, or by messages in its log. The choice depends on the setting CHANGE_FEED, the
 * server and the role. `announce_by` in the migrations explains why switching works this way.
 */

import pg from 'pg';
import { createSession, isUnresponsive } from '../../database/session.ts';
import { errorText, SetupError } from '../../errors.ts';
import { guideFile } from '../../root.ts';
import { newSlot } from './log.ts';

interface FeedSetup {
  /** `both` while the owner of the database switches it back to NOTIFY by hand. */
  readonly mode: 'notify' | 'logical' | 'both';
  /** The server's setting. With any other than `logical` everything is announced by NOTIFY. */
  readonly walLevel: string;
  /** Whether the publication exists that a slot is read with. */
  readonly isPublished: boolean;
}

/** The advisory lock under which one gateway at a time switches the mode. `announce_by` takes it as well. */
const switchLock = 0xd07e7a12;

/** How long, in milliseconds, to wait for a trial slot. The server creates it only after running writers have ended. */
const longestTrial = 3_000;

/** Gateways have to read messages until no transaction is left that announces by them alone. */
const backToNotify = `As the owner of the function announce: SELECT announce_by('both'); and, once all have ended that write by then, SELECT announce_by('notify');`;

/** The resulting mode, and the reason if it is not the wanted one. */
interface ChosenMode {
  readonly mode: FeedSetup['mode'];
  readonly why?: string;
}

/**
 * Switches the database to messages, if they are wanted. `auto` leaves it as it is, unless it announces by NOTIFY and messages can be
 * read.
 * @throws {SetupError} if the wanted mode is not possible.
 */
export async function chooseAnnounceMode(
  wanted: 'auto' | 'notify' | 'logical',
  direct: pg.ClientConfig,
): Promise<ChosenMode> {
  const { client, connect, close } = createSession(direct);
  try {
    await connect();
    const { mode, walLevel } = await readFeedSetup(client);
    if (mode === 'notify' ? wanted === 'notify' : wanted === 'auto') return { mode };
    if (wanted === 'notify') throw new Error(`the database is switched to messages. ${backToNotify}`);
    if (walLevel !== 'logical')
      throw new Error(
        `the server has wal_level = ${walLevel}. Set wal_level = logical in its settings and start it again.`,
      );
    await trySlot(direct);
    await switchToMessages(client);
    return { mode: 'logical' };
  } catch (error) {
    const why = errorText(error);
    if (wanted === 'auto') return { mode: 'notify', why };
    throw new SetupError(`CHANGE_FEED is ${wanted}, which is not available: ${why}`);
  } finally {
    await close();
  }
}

async function readFeedSetup(client: pg.ClientBase): Promise<FeedSetup> {
  const { rows } = await client.query<FeedSetup>(
    `SELECT substring(prosrc FROM 'WHEN ''logical'' THEN ''(\\w+)''') AS mode,
       current_setting('wal_level') AS "walLevel",
       EXISTS (SELECT FROM pg_publication WHERE pubname = 'dovetail') AS "isPublished"
     FROM pg_proc WHERE oid = to_regprocedure('announce(text)')`,
  );
  const [setup] = rows;
  if (!setup) throw new Error('there is no function announce(text)');
  return setup;
}

/** The requirements of a slot, for errors without a hint of PostgreSQL. */
const slotNeeds = `The role needs REPLICATION, pg_hba.conf has to let it replicate, max_wal_senders and max_replication_slots have to be large enough, and no pooler may stand in between: see ${guideFile('deployment.md#by-messages-in-the-log')}.`;

/** Creates a slot for a moment. @throws if that fails, unless it only has to wait for writing transactions. */
async function trySlot(direct: pg.ClientConfig): Promise<void> {
  // The types of `pg` do not have the parameter, which it passes on.
  const config: pg.ClientConfig & { replication: 'database' } = { ...direct, replication: 'database' };
  const { client, connect, close } = createSession(config, longestTrial);
  try {
    await connect();
    await client.query(newSlot().create);
  } catch (error) {
    if (isUnresponsive(error)) return;
    const { detail, hint } = error instanceof pg.DatabaseError ? error : {};
    throw new Error(`${errorText(error)}. ${hint ?? detail ?? slotNeeds}`);
  } finally {
    await close();
  }
}

/** Switches the mode, unless another gateway has done so meanwhile. Gateways are told, and reconnect. After an error, close the client. */
async function switchToMessages(client: pg.ClientBase): Promise<void> {
  try {
    // Stated, since the role may have other defaults.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
    await client.query(`SELECT pg_advisory_xact_lock(${switchLock})`);
    const { mode, isPublished } = await readFeedSetup(client);
    if (!isPublished) await client.query('CREATE PUBLICATION dovetail');
    if (mode !== 'logical') await client.query(`SELECT announce_by('logical')`);
    await client.query('COMMIT');
  } catch (error) {
    throw new Error(
      `${errorText(error)}. As a role that may: CREATE PUBLICATION dovetail; SELECT announce_by('logical');`,
    );
  }
}
