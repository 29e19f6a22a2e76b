/** Checks the connections to a server: the direct one past a pooler, and whether changes are received. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type pg from 'pg';
import { type ServerConfig, serverOf } from '../../database/connection/client.ts';
import { findDifference } from '../../database/connection/direct.ts';
import type { ServerUrls } from '../../database/connection/find.ts';
import { reasonOf } from '../../database/connectionError.ts';
import { isPooled, shareSessions } from '../../database/pooler.ts';
import { createSession } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { type CheckResult, type Finding, ok, problem, skipped, timeout } from './finding.ts';

/** Checks that the direct connection leads to the same database, and that changes are received over it. */
export async function checkConnections(
  client: pg.Client,
  server: ServerConfig,
  ways: ServerUrls | undefined,
): Promise<Finding[]> {
  if (!ways) return [{ check: 'change feed', ...skipped('the gateway hears its own database') }];
  if (ways.directUrl === undefined) return [{ check: 'change feed', ...(await checkFeed(client, server)) }];
  const direct = serverOf(ways.directUrl);
  const verdict = await checkDirect(client, direct, ways.directUrl);
  const feed =
    verdict.state === 'ok' ? await checkFeed(client, direct) : skipped('the direct connection comes first');
  return [
    { check: 'direct connection', ...verdict },
    { check: 'change feed', ...feed },
  ];
}

async function checkDirect(client: pg.Client, direct: ServerConfig, directUrl: string): Promise<CheckResult> {
  const session = createSession(direct, timeout);
  const name = withoutPassword(directUrl);
  try {
    await session.client.connect();
    const difference = await findDifference(client, session.client);
    if (difference !== undefined)
      return problem(
        `${name} leads to ${difference}`,
        'Name the same database in DATABASE_DIRECT_URL as in DATABASE_URL, past its pooler.',
      );
    return ok(`${name} leads to the same database`);
  } catch (error) {
    const { says, advice } = reasonOf(session.client, error, directUrl, 'DATABASE_DIRECT_URL');
    return problem(`${name}: ${says}`, advice);
  } finally {
    await session.close();
  }
}

/** Whether what one connection says is heard by another: not every pooler lets it through. */
async function checkFeed(client: pg.Client, direct: ServerConfig): Promise<CheckResult> {
  const channel = `dovetail_doctor_${randomBytes(8).toString('hex')}`;
  const { client: listener, close } = createSession(direct, timeout);
  try {
    await listener.connect();
    // A LISTEN would stay in a session that other clients use.
    if ((await isPooled(listener)) && (await sharesSessions(listener, direct)))
      throw new Error('the pooler does not give each connection a session of its own');
    await listener.query(`LISTEN ${channel}`);
    const heard = once(listener, 'notification', { signal: AbortSignal.timeout(timeout) });
    const began = performance.now();
    await Promise.all([heard, client.query(`NOTIFY ${channel}`)]);
    return ok(`a notification arrived within ${Math.ceil(performance.now() - began)} ms`);
  } catch (error) {
    return problem(
      `notifications do not arrive: ${errorText(error)}`,
      'Name the server itself in DATABASE_DIRECT_URL, or set its pooler to session mode: without them nothing is cached, and subscriptions deliver at their start and every CACHE_MAX_AGE alone.',
    );
  } finally {
    await close();
  }
}

/** Whether a pooler is seen to give the session of a connection to another one. */
async function sharesSessions(client: pg.Client, direct: ServerConfig): Promise<boolean> {
  const other = createSession(direct, timeout);
  try {
    await other.client.connect();
    return await shareSessions(client, other.client);
  } finally {
    await other.close();
  }
}
