/** Which way a database announces, from the setting CHANGE_FEED and from what the server and the role can. */

import cluster from 'node:cluster';
import type pg from 'pg';
import { errorText, SetupError } from '../../errors.ts';
import { createSession } from '../session.ts';
import { findObstacle, type Obstacle } from './trial.ts';
import {
  announceBy,
  awaitWriters,
  type FeedSetup,
  inTurn,
  publish,
  readFeedSetup,
  type Way,
} from './ways.ts';

export type Wanted = 'auto' | 'notify' | 'logical';

/** How long, in milliseconds, a start waits for those who began to write before the database is switched back. */
const longestWait = 2_000;

/**
 * Switches the database to the way that is wanted. `auto` leaves it as it is, unless it announces by NOTIFY, messages can
 * be read, and nobody listens who knows of no other way.
 * @returns the way that it has come to, and why where it is not the one that was asked for.
 * @throws {SetupError} when the way that is asked for cannot be had.
 */
export async function chooseWay(
  wanted: Wanted,
  direct: pg.ClientConfig,
): Promise<{ way: Way; why?: string }> {
  const { client, close } = createSession(direct);
  try {
    await client.connect();
    if (wanted === 'notify') return await leaveMessages(client);
    const setup = await readFeedSetup(client);
    if (wanted === 'logical') return await takeMessages(client, setup, direct);
    return { way: (await mayTakeMessages(setup, direct)) ? await switchToMessages(client) : setup.way };
  } catch (error) {
    if (error instanceof SetupError) throw error;
    if (wanted === 'auto') return { way: 'notify', why: errorText(error) };
    throw new SetupError(`CHANGE_FEED is ${wanted}, which cannot be had: ${errorText(error)}`, {
      cause: error,
    });
  } finally {
    await close();
  }
}

async function mayTakeMessages(setup: FeedSetup, direct: pg.ClientConfig): Promise<boolean> {
  const { way, decodes, owns, listeners, unseen } = setup;
  if (way !== 'notify' || !decodes || !owns || listeners > 0 || unseen > 0) return false;
  return (await findObstacle(direct)) === undefined;
}

async function takeMessages(
  client: pg.ClientBase,
  setup: FeedSetup,
  direct: pg.ClientConfig,
): Promise<{ way: Way; why?: string }> {
  const lack = lackOf(setup);
  if (lack) throw notToBeHad(lack);
  // The slot of a worker is its parent's, which may be the last that there is.
  const isRead = setup.way === 'logical' && setup.isPublished;
  if (isRead && cluster.isWorker) return { way: 'logical' };
  const obstacle = await findObstacle(direct);
  if (obstacle) throw notToBeHad(obstacle);
  if (isRead) return { way: 'logical' };
  const way = await switchToMessages(client);
  if (way === 'logical') return { way };
  return { way, why: 'somebody listens who knows of no other way than NOTIFY; the next start looks again' };
}

/** What is lacking for messages, of what the database says itself. */
export function lackOf(setup: FeedSetup): Obstacle | undefined {
  const { decodes, walLevel, way, isPublished, owns, role } = setup;
  if (!decodes)
    return {
      says: `the server has wal_level = ${walLevel}`,
      advice: 'Set wal_level = logical in its settings and start it again.',
    };
  if ((way === 'logical' && isPublished) || owns) return undefined;
  return {
    says: `the role ${JSON.stringify(role)} does not own the function announce, and cannot switch the database`,
    advice: `As its owner: CREATE PUBLICATION dovetail; SELECT announce_by('logical');`,
  };
}

function notToBeHad({ says, advice }: Obstacle): SetupError {
  return new SetupError(`CHANGE_FEED is logical, which cannot be had: ${says}. ${advice}`);
}

async function switchToMessages(client: pg.ClientBase): Promise<Way> {
  return inTurn(client, async () => {
    // Another gateway may have been faster.
    const { way, isPublished, listeners } = await readFeedSetup(client);
    if (!isPublished) await publish(client);
    const next = listeners > 0 ? 'both' : 'logical';
    if (way !== next) await announceBy(client, next);
    return next;
  });
}

async function leaveMessages(client: pg.ClientBase): Promise<{ way: Way; why?: string }> {
  const { way, owns, role, decodes } = await readFeedSetup(client);
  if (way === 'notify') return { way };
  if (!owns)
    throw new SetupError(
      `CHANGE_FEED is notify, but the database is switched to messages, and the role ${JSON.stringify(role)} does not own the function announce. As its owner: SELECT announce_by('notify');`,
    );
  // Gateways read messages until nobody is left who may send one.
  if (decodes) await inTurn(client, () => announceBy(client, 'both'));
  if (decodes && !(await awaitWriters(client, longestWait)))
    return { way: 'both', why: 'somebody writes who began before; the next start looks again' };
  await inTurn(client, () => announceBy(client, 'notify'));
  return { way: 'notify' };
}
