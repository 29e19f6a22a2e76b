/** Checks of a database server: its version and state, the way to it, and whether its notifications arrive. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type pg from 'pg';
import {
  findDifference,
  findEncodingProblem,
  oldestServer,
  readOnlyServer,
  reasonOf,
  type ServerUrls,
  serverOf,
} from '../../database/connection.ts';
import {
  findForeignTables,
  findPathProblem,
  findSchemaProblem,
  findVersionProblem,
  readProgress,
} from '../../database/migrate.ts';
import { checkListener, checkPooler, createSession, isPooled } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import type { Check, ExaminedServer, Found } from '../../extensionPoints.ts';
import { connectionAdvice, encodingAdvice, foreignTablesAdvice, schemaAdvice } from './advice.ts';
import { type Finding, problemOf, runChecks, timeout } from './finding.ts';
import { findHiddenTables, findMissingRights, findSilentTriggers } from './rights.ts';

/** A server that is connected, with what the checks of the core need besides. */
interface ConnectedServer extends ExaminedServer {
  readonly urls: ServerUrls;
  readonly info: Awaited<ReturnType<typeof readInfo>>;
}

const checks: readonly Check<ConnectedServer>[] = [
  ['database', checkVersion],
  ['database encoding', checkEncoding],
  // PgBouncer ends a connection when it rejects a transaction of it, so no later check could run.
  ['pooler', findPoolerProblem, true],
  ['pooler', checkPooling],
  ['direct connection', connectDirectly, true],
  ['database rights', checkRights, true],
  ['migrations', checkMigrations, true],
  ['row security', checkHiddenTables],
  ['triggers', checkTriggers],
  ['change feed', checkFeed],
];

/** @param others the checks that follow those of the core. */
export async function examineServer(
  urls: ServerUrls,
  others: readonly Check<ExaminedServer>[],
): Promise<Finding[]> {
  const { url, directUrl } = urls;
  const server = serverOf(directUrl ?? url);
  const session = createSession(serverOf(url), timeout);
  const direct = directUrl === undefined ? session : createSession(server, timeout);
  const { client } = session;
  try {
    await session.connect();
    return await runChecks([...checks, ...others], {
      urls,
      client,
      direct,
      server,
      info: await readInfo(client),
    });
  } catch (error) {
    // With the words of a start.
    return [
      {
        check: 'database',
        state: 'problem',
        says: `${withoutPassword(url)}: ${reasonOf(error, url)}`,
        advice: connectionAdvice(client, error, url, 'DATABASE_URL'),
      },
    ];
  } finally {
    await Promise.all([session.close(), direct.close()]);
  }
}

async function readInfo(client: pg.Client) {
  const { rows } = await client.query<{
    version: string;
    isReadOnly: boolean;
    role: string;
    encoding: string;
  }>(
    `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS "isReadOnly", current_user AS role,
       current_setting('server_encoding') AS encoding`,
  );
  const [info] = rows;
  if (!info) throw new Error('it returns nothing');
  return info;
}

function checkVersion({ urls, info: { version } }: ConnectedServer): Found {
  const says = `PostgreSQL ${version}, ${withoutPassword(urls.url)}`;
  if (Number.parseInt(version, 10) >= oldestServer) return says;
  return { says, advice: `Dovetail needs PostgreSQL ${oldestServer} or later.` };
}

function checkEncoding({ client, info: { encoding } }: ConnectedServer): Found {
  const says = findEncodingProblem(client.database, encoding);
  return says && { says, advice: encodingAdvice(client) };
}

async function checkRights({ client, info: { isReadOnly, role } }: ConnectedServer): Promise<Found> {
  if (isReadOnly) return { says: readOnlyServer, advice: 'Name the primary in DATABASE_URL.' };
  const hidden = await findPathProblem(client);
  if (hidden) return { says: hidden, advice: schemaAdvice(quoted(role)) };
  const missing = await findMissingRights(client);
  if (missing.length === 0) return 'the role has those that requests need';
  const lacks = missing.map(({ right, tables }) => `${right} on ${tables}`);
  const grants = missing.map(({ right, tables }) => `GRANT ${right} ON ${tables} TO ${quoted(role)};`);
  return {
    says: `the role ${JSON.stringify(role)} lacks rights without which requests fail: ${lacks.join('; ')}`,
    advice: `As the owner of the tables: ${grants.join(' ')}`,
  };
}

/** Whether row-level security hides rows from the role. PostgreSQL reports no error for that. */
async function checkHiddenTables({ client, info: { role } }: ConnectedServer): Promise<Found> {
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

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

async function checkMigrations({ client, direct }: ConnectedServer): Promise<Found> {
  const foreign = await findForeignTables(client);
  if (foreign) return { says: foreign, advice: foreignTablesAdvice(client) };
  const { applied, pending, unknown } = await readProgress(client);
  const other = findVersionProblem(unknown);
  if (other) return { says: other, advice: 'Install the version that has them, or name another database.' };
  if (pending.length === 0) return `all ${applied} applied`;
  // The role of the direct connection applies them.
  const unwritable = await findSchemaProblem(direct.client);
  if (unwritable) return { says: unwritable, advice: schemaAdvice(quoted(direct.client.user ?? '')) };
  return `${applied} applied, ${pending.length} pending: the next start applies them`;
}

async function checkTriggers({ client }: ConnectedServer): Promise<Found> {
  if ((await readProgress(client)).pending.length > 0) return undefined;
  const silent = await findSilentTriggers(client);
  if (silent.length === 0) return 'every change is announced';
  const states = silent.map(({ table, trigger, state }) => `${table}.${trigger} ${state}`);
  const advice = silent.map(({ table, trigger, state, does }) =>
    state === 'is missing'
      ? `create ${trigger} on "${table}" as the newest migration that names it does;`
      : `ALTER TABLE "${table}" ENABLE ${does === 'announce' ? 'ALWAYS ' : ''}TRIGGER ${trigger};`,
  );
  return {
    says: `changes are not announced or rules not kept: ${states.join(', ')}`,
    advice: `As the owner of the tables: ${advice.join(' ')} then start the gateways again, which forget what they cached.`,
  };
}

/** Whether a start would reject the pooler. */
async function findPoolerProblem({ client }: ConnectedServer): Promise<Found> {
  try {
    if (await isPooled(client)) await checkPooler(client);
    return undefined;
  } catch (error) {
    return { ...problemOf(error), advice: 'Do that, or connect to the server itself.' };
  }
}

/** Through a pooler the gateway changes no settings of a session, since other clients use it as well. */
async function checkPooling({ client }: ConnectedServer): Promise<Found> {
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
async function connectDirectly({ client, direct, urls }: ConnectedServer): Promise<Found> {
  const url = urls.directUrl;
  if (url === undefined) return undefined;
  const name = withoutPassword(url);
  try {
    await direct.connect();
  } catch (error) {
    return {
      says: `${name}: ${reasonOf(error, url)}`,
      advice: connectionAdvice(direct.client, error, url, 'DATABASE_DIRECT_URL'),
    };
  }
  const difference = await findDifference(client, direct.client);
  if (difference === undefined) return `${name} leads to the same database`;
  return {
    says: `${name} leads to ${difference}`,
    advice: 'Name the same database in DATABASE_DIRECT_URL as in DATABASE_URL, past its pooler.',
  };
}

/** Whether a notification of one connection reaches another: not every pooler lets it through. */
async function checkFeed({ client, server }: ConnectedServer): Promise<Found> {
  const channel = `dovetail_doctor_${randomBytes(8).toString('hex')}`;
  const [listener, other] = [createSession(server, timeout), createSession(server, timeout)];
  try {
    await listener.connect();
    await other.client.connect();
    await checkListener(listener.client, other.client);
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
