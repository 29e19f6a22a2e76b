/** Checks of what a connection to the database tells: version, rights, migrations and triggers, and what stands between. */

import type pg from 'pg';
import { findSilentTriggers } from '../../database/announcements.ts';
import { type ServerConfig, serverOf } from '../../database/connection/client.ts';
import { findEncodingProblem, oldestServer, type ServerUrls } from '../../database/connection/find.ts';
import { reasonOf } from '../../database/connectionError.ts';
import { findForeignTables, findVersionProblem, readProgress } from '../../database/migrate.ts';
import {
  findHiddenTables,
  findMissingRights,
  findSchemaProblem,
  type MissingRight,
} from '../../database/rights.ts';
import { createSession, isUnresponsive, unresponsive } from '../../database/session.ts';
import { type Diagnosis, errorText } from '../../errors.ts';
import { checkAnnouncing, checkDirect, checkFeed, checkPooling, findPoolerProblem } from './connections.ts';
import { type Check, type Finding, type Found, findingsOf, runChecks, timeout } from './finding.ts';

/** A database that is connected. */
export interface Connected {
  readonly client: pg.Client;
  readonly server: ServerConfig;
  /** What findings call the database. */
  readonly name: string;
  readonly info: ServerInfo;
  /** By which URLs a server is reached; undefined for the embedded engine of a running gateway. */
  readonly ways: ServerUrls | undefined;
  readonly direct: Direct;
}

/** Where changes are heard and migrations applied: by the connection of DATABASE_DIRECT_URL, or else by the same one. */
export interface Direct {
  readonly client: pg.Client;
  readonly server: ServerConfig;
  /** Why there is no such connection. */
  readonly error?: unknown;
}

const ofAny: readonly Check<Connected>[] = [
  { name: 'database', find: checkVersion },
  { name: 'database rights', find: findObstacle, isVital: true },
  { name: 'migrations', find: ({ client, ways }) => ways && findForeignTables(client), isVital: true },
  { name: 'database rights', find: checkRights },
  { name: 'row security', find: checkHiddenTables },
  { name: 'migrations', find: checkMigrations },
  { name: 'triggers', find: checkTriggers },
];

const ofServers: readonly Check<Connected>[] = [
  { name: 'database encoding', find: ({ client, info }) => findEncodingProblem(client, info.encoding) },
  // PgBouncer ends the connection on which a transaction was begun that it does not take.
  { name: 'pooler', find: findPoolerProblem, isVital: true },
  { name: 'pooler', find: checkPooling },
  { name: 'direct connection', find: checkDirect, isVital: true },
  { name: 'change feed', find: checkFeed },
  { name: 'announcements', find: checkAnnouncing },
];

export async function askDatabase(
  server: ServerConfig,
  name: string,
  ways: ServerUrls | undefined,
): Promise<Finding[]> {
  const { client, connect, close } = createSession(server, timeout);
  let direct: OpenDirect | undefined;
  try {
    await connect();
    const info = await readInfo(client);
    direct = ways?.directUrl === undefined ? undefined : await openDirect(ways.directUrl);
    const connected = { client, server, name, info, ways, direct: direct ?? { client, server } };
    return await runChecks(ways ? [...ofAny, ...ofServers] : ofAny, connected);
  } catch (error) {
    // Of a server, as a start says it.
    const { says, advice } = ways
      ? reasonOf(client, error, ways.url)
      : {
          says: isUnresponsive(error) ? unresponsive.says : errorText(error),
          advice: 'Stop the gateway and start it again.',
        };
    return findingsOf('database', { says: `${name}: ${says}`, advice });
  } finally {
    await Promise.all([close(), direct?.close()]);
  }
}

interface OpenDirect extends Direct {
  close(): Promise<void>;
}

async function openDirect(url: string): Promise<OpenDirect> {
  const server = serverOf(url);
  const { client, connect, close } = createSession(server, timeout);
  return connect().then(
    () => ({ client, server, close }),
    (error: unknown) => ({ client, server, error, close }),
  );
}

/** What the database says of itself. */
interface ServerInfo {
  readonly version: string;
  readonly number: number;
  readonly isReplica: boolean;
  readonly mayCreate: boolean;
  readonly role: string;
  readonly schema: string | null;
  readonly encoding: string;
}

async function readInfo(client: pg.Client): Promise<ServerInfo> {
  const { rows } = await client.query<ServerInfo>(`
    SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
      pg_is_in_recovery() AS "isReplica",
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
      current_user AS role, current_schema() AS schema, current_setting('server_encoding') AS encoding`);
  const [info] = rows;
  if (!info) throw new Error('it returns nothing');
  return info;
}

function checkVersion({ name, info: { version, number } }: Connected): Found {
  const says = `PostgreSQL ${version}, ${name}`;
  if (number >= oldestServer * 10_000) return says;
  return { says, advice: `Dovetail needs PostgreSQL ${oldestServer} or later.` };
}

/** What keeps the other checks from telling anything. */
async function findObstacle({ client, info: { isReplica, role } }: Connected): Promise<Found> {
  if (isReplica)
    return { says: 'it is a replica, which can only be read', advice: 'Name the primary in DATABASE_URL.' };
  const missing = await findMissingRights(client);
  return missing.some(({ table }) => table === '_prisma_migrations') ? problemOf(missing, role) : undefined;
}

async function checkRights({ client, info, direct }: Connected): Promise<Found> {
  const missing = await findMissingRights(client);
  if (missing.length > 0) return problemOf(missing, info.role);
  // The role of the direct connection applies migrations.
  const { mayCreate, role, schema } = direct.error === undefined ? await readInfo(direct.client) : info;
  if (mayCreate) return 'tables can be created';
  const { applied, pending } = await readProgress(client);
  if (pending.length === 0) return 'tables cannot be created, and need not be';
  const schemaProblem = applied === 0 ? await findSchemaProblem(client) : undefined;
  return (
    schemaProblem ?? {
      says: `the role ${JSON.stringify(role)} may not create tables${schema === null ? '' : ` in the schema ${JSON.stringify(schema)}`}`,
      advice:
        'Run `npx dovetail migrate` with a DATABASE_URL of the role that owns the tables, or grant this one CREATE on the schema.',
    }
  );
}

/** What the gateway needs, and the role may not do. */
function problemOf(missing: readonly MissingRight[], role: string): Diagnosis {
  const byRight = new Map<string, string[]>();
  for (const { right, table } of missing) byRight.set(right, [...(byRight.get(right) ?? []), quoted(table)]);
  const rights = [...byRight].map(([right, tables]) => ({ right, tables: tables.join(', ') }));
  const says = rights.map(({ right, tables }) => `${right} on ${tables}`).join('; ');
  const grants = rights.map(({ right, tables }) => `GRANT ${right} ON ${tables} TO ${quoted(role)};`);
  return {
    says: `the role ${JSON.stringify(role)} lacks rights without which requests fail: ${says}`,
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

async function checkMigrations({ client }: Connected): Promise<Found> {
  const { applied, pending, unknown } = await readProgress(client);
  const found = findVersionProblem(unknown);
  if (found) return found;
  if (pending.length === 0) return `all ${applied} applied`;
  return `${applied} applied, ${pending.length} pending: the next start applies them`;
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
  return {
    says: says.join('; '),
    advice: `As the owner of the tables: ${advice.join(' ')} then start the gateways again, which forget what they cached.`,
  };
}
