/** Checks of what a connection to the database tells: version, rights, migrations and triggers. */

import type pg from 'pg';
import { findSilentTriggers } from '../../database/announcements.ts';
import { serverOf } from '../../database/connection/client.ts';
import { findEncodingProblem, oldestServer, type ServerUrls } from '../../database/connection/find.ts';
import { reasonOf } from '../../database/connectionError.ts';
import { findVersionProblem, readForeignTables, readProgress } from '../../database/migrate.ts';
import {
  findHiddenTables,
  findMissingRights,
  findSchemaProblem,
  findUsageProblem,
} from '../../database/rights.ts';
import { createSession, type Session } from '../../database/session.ts';
import { withoutPassword } from '../../errors.ts';
import * as connections from './connections.ts';
import { type Check, type Finding, type Found, runChecks, timeout } from './finding.ts';

/** A server that is connected. */
export interface Connected {
  readonly urls: ServerUrls;
  readonly client: pg.Client;
  /** Where changes are heard and migrations applied: by DATABASE_DIRECT_URL, or else by the same connection. */
  readonly direct: Session;
  readonly info: Awaited<ReturnType<typeof readInfo>>;
}

const checks: readonly Check<Connected>[] = [
  ['database', checkVersion],
  ['database encoding', ({ client, info }) => findEncodingProblem(client, info.encoding)],
  // PgBouncer ends the connection on which a transaction was begun that it does not take.
  ['pooler', connections.findPoolerProblem, true],
  ['pooler', connections.checkPooling],
  ['direct connection', connections.connectDirectly, true],
  ['database rights', checkRights, true],
  ['migrations', checkMigrations, true],
  ['row security', checkHiddenTables],
  ['triggers', checkTriggers],
  ['change feed', connections.checkFeed],
  ['announcements', connections.checkAnnouncing],
];

export async function examineServer(urls: ServerUrls): Promise<Finding[]> {
  const { url, directUrl } = urls;
  const session = createSession(serverOf(url), timeout);
  const direct = directUrl === undefined ? session : createSession(serverOf(directUrl), timeout);
  const { client } = session;
  try {
    await session.connect();
    return await runChecks(checks, { urls, client, direct, info: await readInfo(client) });
  } catch (error) {
    // As a start says it.
    const { says, advice } = reasonOf(client, error, url);
    return [{ check: 'database', state: 'problem', says: `${withoutPassword(url)}: ${says}`, advice }];
  } finally {
    await Promise.all([session.close(), direct.close()]);
  }
}

/** What the database says of itself and of the role. */
async function readInfo(client: pg.Client) {
  const { rows } = await client.query<{
    version: string;
    isReplica: boolean;
    role: string;
    encoding: string;
  }>(
    `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS "isReplica", current_user AS role,
       current_setting('server_encoding') AS encoding`,
  );
  const [info] = rows;
  if (!info) throw new Error('it returns nothing');
  return info;
}

function checkVersion({ urls, info: { version } }: Connected): Found {
  const says = `PostgreSQL ${version}, ${withoutPassword(urls.url)}`;
  if (Number.parseInt(version, 10) >= oldestServer) return says;
  return { says, advice: `Dovetail needs PostgreSQL ${oldestServer} or later.` };
}

/** Whether the role may do what requests need. */
async function checkRights({ client, info: { isReplica, role } }: Connected): Promise<Found> {
  const unusable = await findUsageProblem(client);
  if (unusable) return unusable;
  if (isReplica)
    return { says: 'it is a replica, which can only be read', advice: 'Name the primary in DATABASE_URL.' };
  const missing = await findMissingRights(client);
  if (missing.length === 0) return 'the role has those that requests need';
  const lacks = missing.map(({ right, table }) => `${right} on ${quoted(table)}`);
  const grants = missing.map(({ right, table }) => `GRANT ${right} ON ${quoted(table)} TO ${quoted(role)};`);
  return {
    says: `the role ${JSON.stringify(role)} lacks rights without which requests fail: ${lacks.join('; ')}`,
    advice: `As the owner of the tables: ${grants.join(' ')}`,
  };
}

/** Whether row-level security hides rows from the role, which no error ever says. */
async function checkHiddenTables({ client, info: { role } }: Connected): Promise<Found> {
  const tables = (await findHiddenTables(client)).map(quoted);
  if (tables.length === 0) return undefined;
  const policies = tables.map(
    (table) => `CREATE POLICY dovetail ON ${table} TO ${quoted(role)} USING (true);`,
  );
  return {
    says: `row-level security hides the rows of ${tables.join(', ')} from the role ${JSON.stringify(role)}`,
    advice: `As a superuser: ALTER ROLE ${quoted(role)} BYPASSRLS; or as the owner of the tables: ${policies.join(' ')}`,
  };
}

/** A name as SQL takes it. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

async function checkMigrations({ client, direct }: Connected): Promise<Found> {
  const foreign = await readForeignTables(client);
  if (foreign) return foreign;
  const { applied, pending, unknown } = await readProgress(client);
  if (pending.length === 0) return findVersionProblem(unknown) ?? `all ${applied} applied`;
  return (
    findVersionProblem(unknown) ??
    // The role of the direct connection applies them.
    (await findSchemaProblem(direct.client)) ??
    `${applied} applied, ${pending.length} pending: the next start applies them`
  );
}

const stateTexts = {
  missing: 'is missing',
  disabled: 'is disabled',
  sometimes: 'fires in some sessions only',
} as const;

async function checkTriggers({ client }: Connected): Promise<Found> {
  if ((await readProgress(client)).pending.length > 0) return undefined;
  const silent = await findSilentTriggers(client);
  if (silent.length === 0) return 'every change is announced';
  const states = silent.map(({ table, trigger, state }) => `${table}.${trigger} ${stateTexts[state]}`);
  const advice = silent.map(({ table, trigger, state, does }) =>
    state === 'missing'
      ? `create ${trigger} on "${table}" as the newest migration that names it does;`
      : `ALTER TABLE "${table}" ENABLE ${does === 'announce' ? 'ALWAYS ' : ''}TRIGGER ${trigger};`,
  );
  return {
    says: `changes are not announced or rules not kept: ${states.join(', ')}`,
    advice: `As the owner of the tables: ${advice.join(' ')} then start the gateways again, which forget what they cached.`,
  };
}
