/** Checks of the connections to a server: poolers, the direct connection, and whether changes are heard over it. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type pg from 'pg';
import type { ServerConfig } from '../../database/connection/client.ts';
import { findDifference } from '../../database/connection/direct.ts';
import { reasonOf } from '../../database/connectionError.ts';
import { checkReplicationSlot, readFeedSetup } from '../../database/feed/announceMode.ts';
import { readProgress } from '../../database/migrate.ts';
import { checkPooler, isPooled, shareSessions } from '../../database/pooler.ts';
import { createSession } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { type Found, messageOf, timeout } from './finding.ts';
import type { Connected } from './server.ts';

/** What a start says of a pooler that it rejects. */
export async function findPoolerProblem({ client }: Connected): Promise<Found> {
  if (!(await isPooled(client))) return undefined;
  try {
    await checkPooler(client);
    return undefined;
  } catch (error) {
    return { says: messageOf(error), advice: 'Do that, or connect to the server itself.' };
  }
}

/** Through a pooler the gateway makes no settings, which would be other clients' as well. */
export async function checkPooling({ client }: Connected): Promise<Found> {
  if (!(await isPooled(client))) return 'none stands between';
  const { rows } = await client.query<{ role: string; timeout: string }>(
    `SELECT quote_ident(current_user) AS role, current_setting('statement_timeout') AS timeout`,
  );
  const [{ role, timeout } = { role: '', timeout: '0' }] = rows;
  if (timeout !== '0') return `one stands between; the server stops a statement after ${timeout}`;
  return {
    says: 'one stands between, and the server never stops a statement that takes too long',
    advice: `ALTER ROLE ${role} SET statement_timeout = '10s', or what STATEMENT_TIMEOUT is; the gateway waits no longer, but the statement goes on.`,
  };
}

/** Whether the direct connection leads to the same database. */
export async function checkDirect({ client, direct, ways }: Connected): Promise<Found> {
  const url = ways?.directUrl;
  if (url === undefined) return undefined;
  const name = withoutPassword(url);
  if (direct.error !== undefined) {
    const { says, advice } = reasonOf(direct.client, direct.error, url, 'DATABASE_DIRECT_URL');
    return { says: `${name}: ${says}`, advice };
  }
  const difference = await findDifference(client, direct.client);
  if (difference === undefined) return `${name} leads to the same database`;
  return {
    says: `${name} leads to ${difference}`,
    advice: 'Name the same database in DATABASE_DIRECT_URL as in DATABASE_URL, past its pooler.',
  };
}

/** Whether what one connection says is heard by another: not every pooler lets it through. */
export async function checkFeed({ client, direct }: Connected): Promise<Found> {
  const channel = `dovetail_doctor_${randomBytes(8).toString('hex')}`;
  const { client: listener, close } = createSession(direct.server, timeout);
  try {
    await listener.connect();
    // A LISTEN would stay in a session that other clients use.
    if ((await isPooled(listener)) && (await sharesSessions(listener, direct.server)))
      throw new Error('the pooler does not give each connection a session of its own');
    await listener.query(`LISTEN ${channel}`);
    const heard = once(listener, 'notification', { signal: AbortSignal.timeout(timeout) });
    const began = performance.now();
    await Promise.all([heard, client.query(`NOTIFY ${channel}`)]);
    return `a notification arrived within ${Math.ceil(performance.now() - began)} ms`;
  } catch (error) {
    return {
      says: `notifications do not arrive: ${errorText(error)}`,
      advice:
        'Name the server itself in DATABASE_DIRECT_URL, or set its pooler to session mode: without them nothing is cached, and subscriptions deliver at their start and every five minutes alone.',
    };
  } finally {
    await close();
  }
}

/** Whether a pooler is seen to give the session of a connection to another one. */
async function sharesSessions(client: pg.Client, server: ServerConfig): Promise<boolean> {
  const other = createSession(server, timeout);
  try {
    await other.client.connect();
    return await shareSessions(client, other.client);
  } finally {
    await other.close();
  }
}

/** How changes are announced. The log of a start says why. */
export async function checkAnnouncing({ client, direct }: Connected): Promise<Found> {
  if ((await readProgress(client)).pending.length > 0) return undefined;
  const { mode, walLevel, isPublished } = await readFeedSetup(direct.client);
  if (mode === 'notify' || walLevel !== 'logical') return 'by NOTIFY';
  const lack = isPublished
    ? await checkReplicationSlot(direct.server)
    : { says: 'there is no publication dovetail', advice: 'As the owner: CREATE PUBLICATION dovetail;' };
  return lack
    ? { says: `by messages in the log, which cannot be read: ${lack.says}`, advice: lack.advice }
    : 'by messages in the log';
}
