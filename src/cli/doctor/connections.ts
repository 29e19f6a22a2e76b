/** Checks of the connections to a server: poolers, the direct connection, whether changes are heard over it, and standbys. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { serverOf } from '../../database/connection/client.ts';
import { findDifference } from '../../database/connection/direct.ts';
import type { ServerUrls } from '../../database/connection/find.ts';
import { reasonOf } from '../../database/connectionError.ts';
import { checkReplicationSlot, readFeedSetup } from '../../database/feed/announceMode.ts';
import { readProgress } from '../../database/migrate.ts';
import { checkPooler, isPooled, shareSessions } from '../../database/pooler.ts';
import { createSession } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { type Found, problemOf, timeout } from './finding.ts';
import type { Connected } from './server.ts';

/** What a start says of a pooler that it rejects. */
export async function findPoolerProblem({ client }: Connected): Promise<Found> {
  try {
    if (await isPooled(client)) await checkPooler(client);
    return undefined;
  } catch (error) {
    return { ...problemOf(error), advice: 'Do that, or connect to the server itself.' };
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

/** Whether the direct connection can be made, and leads to the same database. The checks after this one use it. */
export async function connectDirectly({ client, direct, urls }: Connected): Promise<Found> {
  const url = urls.directUrl;
  if (url === undefined) return undefined;
  const name = withoutPassword(url);
  try {
    await direct.connect();
  } catch (error) {
    const { says, advice } = reasonOf(direct.client, error, url, 'DATABASE_DIRECT_URL');
    return { says: `${name}: ${says}`, advice };
  }
  const difference = await findDifference(client, direct.client);
  if (difference === undefined) return `${name} leads to the same database`;
  return {
    says: `${name} leads to ${difference}`,
    advice: 'Name the same database in DATABASE_DIRECT_URL as in DATABASE_URL, past its pooler.',
  };
}

const directOf = ({ url, directUrl }: ServerUrls) => serverOf(directUrl ?? url);

/** Whether what one connection says is heard by another: not every pooler lets it through. */
export async function checkFeed({ client, urls }: Connected): Promise<Found> {
  const server = directOf(urls);
  const channel = `dovetail_doctor_${randomBytes(8).toString('hex')}`;
  const [listener, other] = [createSession(server, timeout), createSession(server, timeout)];
  try {
    await listener.connect();
    await other.client.connect();
    // A LISTEN would stay in a session that other clients use.
    if ((await isPooled(listener.client)) && (await shareSessions(listener.client, other.client)))
      throw new Error('the pooler does not give each connection a session of its own');
    await listener.client.query(`LISTEN ${channel}`);
    const heard = once(listener.client, 'notification', { signal: AbortSignal.timeout(timeout) });
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
    await Promise.all([listener.close(), other.close()]);
  }
}

/** How changes are announced. The log of a start says why. */
export async function checkAnnouncing({ client, direct, urls }: Connected): Promise<Found> {
  if ((await readProgress(client)).pending.length > 0) return undefined;
  const { mode, decodes, isPublished } = await readFeedSetup(direct.client);
  if (mode === 'notify' || !decodes) return 'by NOTIFY';
  const lack = isPublished
    ? await checkReplicationSlot(directOf(urls))
    : { says: 'there is no publication dovetail', advice: 'As the owner: CREATE PUBLICATION dovetail;' };
  return lack
    ? { says: `by messages in the log, which cannot be read: ${lack.says}`, advice: lack.advice }
    : 'by messages in the log';
}

/** Whether each standby can be read from. @param url the primary's. */
export async function checkStandbys(url: string, standbys: readonly string[]): Promise<Found[]> {
  // Loaded only where the settings name some.
  const { connectStandby, readPrimary } = await import('../../database/replicas/standby.ts');
  const { client, connect, close } = createSession(serverOf(url), timeout);
  const bounds = { connections: 1, statement: timeout };
  try {
    await connect();
    const primary = await readPrimary({
      run: async <Row extends object>(text: string, values: readonly unknown[]) =>
        (await client.query<Row>(text, [...values])).rows,
    });
    const check = async (standby: string): Promise<Found> => {
      const name = withoutPassword(standby);
      try {
        (await connectStandby({ url: standby, bounds, primary })).close();
        return `${name} can be read from`;
      } catch (error) {
        const advice =
          'It is not read from until that is mended: docs/deployment.md has what a standby needs.';
        return { says: `${name}: ${errorText(error)}`, advice };
      }
    };
    return await Promise.all(standbys.map(check));
  } catch {
    // The check of the database says why.
    return [];
  } finally {
    await close();
  }
}
