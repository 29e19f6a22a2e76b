/** Checks of what a connection to the database tells: version, rights, migrations, triggers, pooler, feed and clock. */

import type pg from 'pg';
import { findSilentTriggers } from '../../database/announcements.ts';
import { type ServerConfig, serverOf } from '../../database/connection/client.ts';
import { findEncodingProblem, oldestServer, type ServerUrls } from '../../database/connection/find.ts';
import { reasonOf } from '../../database/connectionError.ts';
import {
  findVersionProblem,
  type Progress,
  readForeignTables,
  readProgress,
} from '../../database/migrate.ts';
import { checkPooler, isPooled } from '../../database/pooler.ts';
import {
  findHiddenTables,
  findMissingRights,
  findSchemaProblem,
  findUsageProblem,
  type MissingRight,
} from '../../database/rights.ts';
import { createSession, isUnresponsive, unresponsive } from '../../database/session.ts';
import { type Diagnosis, errorText, SetupError } from '../../errors.ts';
import { checkAnnouncing } from './announcing.ts';
import { checkConnections } from './connections.ts';
import { type CheckResult, type Finding, ok, problem, skipped, timeout } from './finding.ts';

/** How far, in milliseconds, two clocks may be apart. */
const largestSkew = 5_000;

/**
 * @param name what findings call the database.
 * @param ways by which URLs a server is reached; undefined for the embedded engine of a running gateway.
 */
export async function askDatabase(
  connection: ServerConfig,
  name: string,
  ways: ServerUrls | undefined,
): Promise<Finding[]> {
  const isServer = ways !== undefined;
  const { client, connect, close } = createSession(connection, timeout);
  try {
    await connect();
    const { rows } = await client.query<ServerInfo>(selectServerInfo);
    const [found] = rows;
    if (!found) throw new Error('it returns nothing');
    const skew = Math.abs(found.now - Date.now());
    const missing = found.isReplica ? [] : await findMissingRights(client);
    const known: Finding[] = [
      { check: 'database', ...ok(`PostgreSQL ${found.version}, ${name}`) },
      { check: 'database version', ...checkVersion(found) },
    ];
    const encoding = isServer ? findEncodingProblem(client, found.encoding) : undefined;
    if (encoding) known.push({ check: 'database encoding', ...problem(encoding.says, encoding.advice) });
    const unusable = await findUsageProblem(client);
    if (unusable) return [...known, { check: 'database rights', ...problem(unusable.says, unusable.advice) }];
    // Without it, nothing else can be told.
    if (missing.some(({ table }) => table === '_prisma_migrations'))
      return [...known, { check: 'database rights', ...judgeMissingRights(missing, found.role) }];
    const foreignTables = isServer ? await readForeignTables(client) : undefined;
    if (foreignTables)
      return [...known, { check: 'migrations', ...problem(foreignTables.says, foreignTables.advice) }];
    const progress = await readProgress(client);
    const migrating = ways?.directUrl === undefined ? found : await readMigrating(ways.directUrl, found);
    return [
      ...known,
      {
        check: 'database rights',
        ...checkRights(found, migrating, progress, missing, await findSchemaProblem(client)),
      },
      ...(await checkHiddenTables(client, found)),
      { check: 'migrations', ...checkMigrations(progress) },
      { check: 'triggers', ...(await checkTriggers(client, progress)) },
      ...(await checkThrough(client, connection, ways, progress)),
      { check: 'clock', ...(isServer ? checkClock(skew) : skipped('there is but one')) },
    ];
  } catch (error) {
    // Of a server, as a start says it.
    const { says, advice } = isServer
      ? reasonOf(client, error, ways.url)
      : {
          says: isUnresponsive(error) ? unresponsive.says : errorText(error),
          advice: 'Stop the gateway and start it again.',
        };
    return [{ check: 'database', ...problem(`${name}: ${says}`, advice) }];
  } finally {
    await close();
  }
}

/** What stands between, and what is heard through it. */
async function checkThrough(
  client: pg.Client,
  connection: ServerConfig,
  ways: ServerUrls | undefined,
  progress: Progress,
): Promise<Finding[]> {
  const poolerProblem = ways && (await findPoolerProblem(client));
  // PgBouncer ends the connection on which a transaction was begun that it does not take.
  if (poolerProblem)
    return [
      { check: 'pooler', ...poolerProblem },
      { check: 'change feed', ...skipped('the pooler comes first') },
    ];
  return [
    { check: 'pooler', ...(ways ? await checkPooling(client) : skipped('there is none')) },
    ...(await checkConnections(client, connection, ways)),
    ...(await checkAnnouncing(client, connection, ways, progress)),
  ];
}

/** What the database says of itself. */
interface ServerInfo {
  version: string;
  number: number;
  isReplica: boolean;
  mayCreate: boolean;
  role: string;
  schema: string | null;
  encoding: string;
  /** In milliseconds since the epoch: a date comes in a style that the server may have set. */
  now: number;
}

const selectServerInfo = `
  SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
    pg_is_in_recovery() AS "isReplica", coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
    current_user AS role, current_schema() AS schema, current_setting('server_encoding') AS encoding,
    extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`;

/** What the database says to the role of DATABASE_DIRECT_URL, which applies migrations; if it says nothing, to the other. */
async function readMigrating(directUrl: string, other: ServerInfo): Promise<ServerInfo> {
  const { client, connect, close } = createSession(serverOf(directUrl), timeout);
  try {
    await connect();
    const { rows } = await client.query<ServerInfo>(selectServerInfo);
    return rows[0] ?? other;
  } catch {
    // The check of the direct connection says why.
    return other;
  } finally {
    await close();
  }
}

function checkVersion({ version, number }: ServerInfo): CheckResult {
  return number >= oldestServer * 10_000
    ? ok(version)
    : problem(version, `Dovetail needs PostgreSQL ${oldestServer} or later.`);
}

function checkRights(
  { isReplica, role: readingRole }: ServerInfo,
  { mayCreate, role, schema }: ServerInfo,
  { applied, pending }: Progress,
  missing: readonly MissingRight[],
  schemaProblem: Diagnosis | undefined,
): CheckResult {
  if (isReplica)
    return problem('it is a replica, which can only be read', 'Name the primary in DATABASE_URL.');
  if (missing.length > 0) return judgeMissingRights(missing, readingRole);
  if (mayCreate) return ok('tables can be created');
  if (pending.length === 0) return ok('tables cannot be created, and need not be');
  if (applied === 0 && schemaProblem) return problem(schemaProblem.says, schemaProblem.advice);
  return problem(
    `the role ${JSON.stringify(role)} may not create tables${schema === null ? '' : ` in the schema ${JSON.stringify(schema)}`}`,
    'Run `npx dovetail migrate` with a DATABASE_URL of the role that owns the tables, or grant this one CREATE on the schema.',
  );
}

/** What the gateway needs, and the role may not do. */
function judgeMissingRights(missing: readonly MissingRight[], role: string): CheckResult {
  const byRight = groupTables(missing);
  const says = [...byRight].map(([right, tables]) => `${right} on ${tables}`).join('; ');
  const grants = [...byRight].map(([right, tables]) => `GRANT ${right} ON ${tables} TO ${quoted(role)};`);
  return problem(
    `the role ${JSON.stringify(role)} lacks rights without which requests fail: ${says}`,
    `As the owner of the tables: ${grants.join(' ')}`,
  );
}

/** Whether row-level security hides rows from the role, which no error ever says. */
async function checkHiddenTables(client: pg.ClientBase, { role }: ServerInfo): Promise<Finding[]> {
  const tables = (await findHiddenTables(client)).map(quoted);
  if (tables.length === 0) return [];
  const policies = tables.map(
    (table) => `CREATE POLICY dovetail ON ${table} TO ${quoted(role)} USING (true);`,
  );
  return [
    {
      check: 'row security',
      ...problem(
        `row-level security hides the rows of ${tables.join(', ')} from the role ${JSON.stringify(role)}`,
        `As a superuser: ALTER ROLE ${quoted(role)} BYPASSRLS; or as the owner of the tables: ${policies.join(' ')}`,
      ),
    },
  ];
}

/** The tables, by what is lacking on them. */
function groupTables(missing: readonly MissingRight[]): Map<string, string> {
  const grouped = new Map<string, string>();
  for (const { right, table } of missing) {
    const before = grouped.get(right);
    grouped.set(right, before === undefined ? quoted(table) : `${before}, ${quoted(table)}`);
  }
  return grouped;
}

/** A name as SQL takes it. */
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

function checkMigrations({ applied, pending, unknown }: Progress): CheckResult {
  const found = findVersionProblem(unknown);
  if (found) return problem(found.says, found.advice);
  if (pending.length === 0) return ok(`all ${applied} applied`);
  return ok(`${applied} applied, ${pending.length} pending: the next start applies them`);
}

const stateTexts = {
  missing: 'is missing',
  disabled: 'is disabled',
  sometimes: 'fires in some sessions only',
} as const;

async function checkTriggers(client: pg.Client, { pending }: Progress): Promise<CheckResult> {
  if (pending.length > 0) return skipped('the pending migrations come first');
  const silent = await findSilentTriggers(client);
  if (silent.length === 0) return ok('every change is announced');
  const advice = silent.map(({ table, trigger, state, does }) =>
    state !== 'missing'
      ? `ALTER TABLE "${table}" ENABLE ${does === 'announce' ? 'ALWAYS ' : ''}TRIGGER ${trigger};`
      : `create ${trigger} on "${table}" as the newest migration that names it does;`,
  );
  const says = (['announce', 'keep'] as const).flatMap((what) => {
    const of = silent.filter(({ does }) => does === what);
    const list = of.map(({ table, trigger, state }) => `${table}.${trigger} ${stateTexts[state]}`).join(', ');
    const lead = what === 'announce' ? 'changes are not announced' : 'rules are not kept';
    return of.length === 0 ? [] : [`${lead}: ${list}`];
  });
  return problem(
    says.join('; '),
    `As the owner of the tables: ${advice.join(' ')} then start the gateways again, which forget what they cached.`,
  );
}

/** What a start says of a pooler that it rejects; undefined of any other. */
async function findPoolerProblem(client: pg.Client): Promise<CheckResult | undefined> {
  if (!(await isPooled(client))) return undefined;
  try {
    await checkPooler(client);
    return undefined;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return problem(error.message, 'Do that, or connect to the server itself.');
  }
}

/** Through a pooler the gateway makes no settings, which would be other clients' as well. */
async function checkPooling(client: pg.Client): Promise<CheckResult> {
  if (!(await isPooled(client))) return ok('none stands between');
  const { rows } = await client.query<{ role: string; timeout: string }>(
    `SELECT quote_ident(current_user) AS role, current_setting('statement_timeout') AS timeout`,
  );
  const [{ role, timeout } = { role: '', timeout: '0' }] = rows;
  if (timeout !== '0') return ok(`one stands between; the server stops a statement after ${timeout}`);
  return problem(
    'one stands between, and the server never stops a statement that takes too long',
    `ALTER ROLE ${role} SET statement_timeout = '10s', or what STATEMENT_TIMEOUT is; the gateway waits no longer, but the statement goes on.`,
  );
}

function checkClock(skew: number): CheckResult {
  const seconds = (skew / 1000).toFixed(1);
  return skew <= largestSkew
    ? ok(`${seconds} s from that of the database`)
    : problem(`${seconds} s from that of the database`, 'Set the clocks by NTP on both machines.');
}
