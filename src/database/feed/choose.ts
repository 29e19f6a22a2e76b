/** Chooses the mode in which the database announces changes: by the setting CHANGE_FEED, and by what the server and the role are able to do. */

import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { type Diagnosis, errorText, SetupError } from '../../errors.ts';
import { createSession } from '../session.ts';
import {
  type AnnounceMode,
  announceBy,
  awaitWriters,
  type FeedSetup,
  publish,
  readFeedSetup,
  withSwitchLock,
} from './announceMode.ts';
import { checkReplicationSlot } from './slotCheck.ts';

/** How long, in milliseconds, a start waits for running writers before it switches the database back to NOTIFY. */
const longestWait = 2_000;

/**
 * Switches the database to the mode that is wanted. `auto` leaves it as it is, unless it announces by NOTIFY, messages can
 * be read, and nobody listens who knows of no other mode.
 * @returns the mode that it has come to, and why where it is not the one that was asked for.
 * @throws {SetupError} when the mode that is asked for cannot be had.
 */
export async function chooseAnnounceMode(
  wanted: Config['CHANGE_FEED'],
  direct: pg.ClientConfig,
): Promise<{ mode: AnnounceMode; why?: string }> {
  const { client, connect, close } = createSession(direct);
  try {
    await connect();
    if (wanted === 'notify') return await switchToNotify(client);
    const setup = await readFeedSetup(client);
    if (wanted === 'logical') return await switchToLogical(client, setup, direct);
    if (await canUseMessages(setup, direct)) return { mode: await switchToMessages(client) };
    const problem = setup.mode === 'notify' ? findSetupProblem(setup) : undefined;
    return { mode: setup.mode, ...(problem && { why: `${problem.says}. ${problem.advice}` }) };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    if (wanted === 'auto') return { mode: 'notify', why: errorText(error) };
    throw new SetupError(`CHANGE_FEED is ${wanted}, which cannot be had: ${errorText(error)}`, {
      cause: error,
    });
  } finally {
    await close();
  }
}

async function canUseMessages(setup: FeedSetup, direct: pg.ClientConfig): Promise<boolean> {
  const { mode, listeners, unseen } = setup;
  if (mode !== 'notify' || listeners > 0 || unseen > 0 || findSetupProblem(setup)) return false;
  return (await checkReplicationSlot(direct)) === undefined;
}

async function switchToLogical(
  client: pg.ClientBase,
  setup: FeedSetup,
  direct: pg.ClientConfig,
): Promise<{ mode: AnnounceMode; why?: string }> {
  const problem = findSetupProblem(setup);
  if (problem) throw unavailable(problem);
  const slotProblem = await checkReplicationSlot(direct);
  if (slotProblem) throw unavailable(slotProblem);
  if (setup.mode === 'logical' && setup.isPublished) return { mode: 'logical' };
  const mode = await switchToMessages(client);
  if (mode === 'logical') return { mode };
  return { mode, why: 'somebody listens who knows of no other mode than NOTIFY; the next start looks again' };
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

function unavailable({ says, advice }: Diagnosis): SetupError {
  return new SetupError(`CHANGE_FEED is logical, which cannot be had: ${says}. ${advice}`);
}

async function switchToMessages(client: pg.ClientBase): Promise<AnnounceMode> {
  return withSwitchLock(client, async () => {
    // Another gateway may have switched in the meantime.
    const { mode, isPublished, listeners } = await readFeedSetup(client);
    if (!isPublished) await publish(client);
    const next = listeners > 0 ? 'both' : 'logical';
    if (mode !== next) await announceBy(client, next);
    return next;
  });
}

async function switchToNotify(client: pg.ClientBase): Promise<{ mode: AnnounceMode; why?: string }> {
  const { mode, owns, role, decodes } = await readFeedSetup(client);
  if (mode === 'notify') return { mode };
  if (!owns)
    throw new SetupError(
      `CHANGE_FEED is notify, but the database is switched to messages, and the role ${JSON.stringify(role)} does not own the function announce. As its owner: SELECT announce_by('both'); and, once all have ended that write by then, SELECT announce_by('notify');`,
    );
  // Gateways read messages until no transaction is left that may send one.
  if (decodes) await withSwitchLock(client, () => announceBy(client, 'both'));
  if (decodes && !(await awaitWriters(client, longestWait)))
    return { mode: 'both', why: 'somebody writes who began before; the next start looks again' };
  await withSwitchLock(client, () => announceBy(client, 'notify'));
  return { mode: 'notify' };
}
