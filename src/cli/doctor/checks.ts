/** Looks for what keeps a gateway from running well, and says what to do about it. Changes nothing. */

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import pg from 'pg';
import { type Config, readConfig } from '../../config.ts';
import { findSilentTriggers } from '../../database/announcements.ts';
import { oldestServer } from '../../database/database.ts';
import { engineFolder, findDamage, findEmbedded } from '../../database/embedded/embedded.ts';
import { type Progress, readProgress } from '../../database/migrate.ts';
import { checkPooler, isPooled, shareSessions } from '../../database/pooler.ts';
import { errorText, SetupError, withoutPassword } from '../../errors.ts';
import { originOf } from '../../http/listen.ts';
import { upstreamOf } from '../../mirror/service.ts';
import { createUpstream } from '../../mirror/upstream.ts';

export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'problem' | 'skipped';
  /** How things are. */
  readonly says: string;
  /** What to do about a problem. */
  readonly advice?: string;
}

type Verdict = Omit<Finding, 'check'>;

const ok = (says: string): Verdict => ({ state: 'ok', says });
const problem = (says: string, advice: string): Verdict => ({ state: 'problem', says, advice });
const skipped = (says: string): Verdict => ({ state: 'skipped', says });

/** How long, in milliseconds, somebody is waited for. */
const timeouts = 5_000;

/** Free space, in bytes, below which a database is about to stop. */
const leastSpace = 200 * 1024 * 1024;

/** How far, in milliseconds, two clocks may be apart. */
const largestSkew = 5_000;

async function checkPersisted(config: Config): Promise<Verdict> {
  const { createDocuments } = await import('../../graphql/documents.ts');
  const { loadPersistedOperations } = await import('../../graphql/persisted.ts');
  try {
    loadPersistedOperations(config, createDocuments(config));
    return ok('all of them can be used');
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return problem(
      error.message,
      'Correct PERSISTED_OPERATIONS and PERSISTED_OPERATIONS_FILE, or unset them.',
    );
  }
}

/** All findings, in the order in which one thing needs the other. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  const findings: Finding[] = [];
  const note = (check: string, verdict: Verdict) => findings.push({ check, ...verdict });

  note('node', checkNode(process.versions.node));
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    for (const line of error.message.split('\n'))
      note('settings', problem(line, 'Correct the variable, or unset it for the default.'));
    return findings;
  }
  note('settings', await checkPersisted(config));

  for (const { check, verdict } of await checkDatabase(config)) note(check, verdict);
  note('disk', await checkDisk(config));
  note('port', await checkPort(config, 'PORT', config.PORT));
  if (config.METRICS_PORT !== undefined)
    note('metrics port', await checkPort(config, 'METRICS_PORT', config.METRICS_PORT));
  note('upstream', await checkUpstream(config));
  return findings;
}

/** What `engines` in package.json says. */
const oldestNode = [20, 19] as const;

/** @param version such as `20.19.0`. */
export function checkNode(version: string): Verdict {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isRecent = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  return isRecent
    ? ok(`Node ${version}`)
    : problem(`Node ${version}`, `Install Node ${oldestNode.join('.')} or later.`);
}

type Checked = readonly { readonly check: string; readonly verdict: Verdict }[];

async function checkDatabase(config: Config): Promise<Checked> {
  const { DATABASE_URL, DATA_DIR } = config;
  if (DATABASE_URL !== undefined) {
    return askDatabase({ connectionString: DATABASE_URL }, withoutPassword(DATABASE_URL), true);
  }
  const folder = resolve(DATA_DIR);
  const unwritable = await access(await nearest(folder), constants.W_OK | constants.X_OK).then(
    () => undefined,
    errorText,
  );
  if (unwritable !== undefined) {
    const verdict = problem(
      `DATA_DIR ${folder}: ${unwritable}`,
      'Make it a folder of the user who runs Dovetail, or set DATA_DIR to another.',
    );
    return [{ check: 'database', verdict }];
  }
  const privacy = { check: 'database access', verdict: await checkAccess(folder) };
  const running = await findEmbedded(DATA_DIR);
  if (!running) return [{ check: 'database', verdict: await checkFolder(DATA_DIR) }, privacy];
  try {
    const asked = await askDatabase(
      running.connection,
      `embedded, in ${folder}, open in a running gateway`,
      false,
    );
    return [...asked, privacy];
  } finally {
    await running.close();
  }
}

/** A folder that no gateway has open. */
async function checkFolder(dataDir: string): Promise<Verdict> {
  const folder = resolve(dataDir);
  const exists = await stat(join(folder, engineFolder)).catch(() => undefined);
  if (!exists) return ok(`embedded, none yet: it will be in ${folder}`);
  const damage = await findDamage(dataDir);
  if (damage === undefined) return ok(`embedded, in ${folder}, and no gateway has it open`);
  return problem(damage, 'Move it away, and restore a copy or start with a new one.');
}

/** Whether only the folder's owner gets at the database. */
async function checkAccess(folder: string): Promise<Verdict> {
  const opens = [
    { path: folder, bits: 0o022, may: 'put other files in the place of those in' },
    { path: join(folder, engineFolder), bits: 0o077, may: 'read or write' },
  ];
  for (const { path, bits, may } of opens) {
    const { mode } = (await stat(path).catch(() => undefined)) ?? { mode: 0 };
    if (mode & bits) return problem(`other users may ${may} ${path}`, `Run: chmod 700 ${path}`);
  }
  return ok('nobody but its owner gets at it');
}

async function askDatabase(connection: pg.ClientConfig, name: string, isServer: boolean): Promise<Checked> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: timeouts, query_timeout: timeouts });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<Standing>(standing);
    const [found] = rows;
    if (!found) throw new Error('it does not answer');
    const skew = Math.abs(found.now - Date.now());
    const progress = await readProgress(client);
    return [
      { check: 'database', verdict: ok(`PostgreSQL ${found.version}, ${name}`) },
      { check: 'database version', verdict: checkVersion(found) },
      { check: 'database rights', verdict: checkRights(found, progress) },
      { check: 'migrations', verdict: checkMigrations(progress) },
      { check: 'triggers', verdict: await checkTriggers(client, progress) },
      { check: 'pooler', verdict: isServer ? await checkPooling(client) : skipped('there is none') },
      {
        check: 'change feed',
        verdict: isServer
          ? await checkFeed(client, connection)
          : skipped('the gateway hears its own database'),
      },
      { check: 'clock', verdict: isServer ? checkClock(skew) : skipped('there is but one') },
    ];
  } catch (error) {
    const advice = isServer
      ? 'Start the server, or correct DATABASE_URL; unset it for the embedded database.'
      : 'Stop the gateway and start it again.';
    return [{ check: 'database', verdict: problem(`${name}: ${errorText(error)}`, advice) }];
  } finally {
    await client.end().catch(() => {});
  }
}

interface Standing {
  version: string;
  number: number;
  isReplica: boolean;
  mayCreate: boolean;
  role: string;
  schema: string | null;
  /** In milliseconds since the epoch: a date comes in a style that the server may have set. */
  now: number;
}

const standing = `
  SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
    pg_is_in_recovery() AS "isReplica", coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate",
    current_user AS role, current_schema() AS schema,
    extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`;

function checkVersion({ version, number }: Standing): Verdict {
  return number >= oldestServer * 10_000
    ? ok(version)
    : problem(version, `Dovetail needs PostgreSQL ${oldestServer} or later.`);
}

function checkRights({ isReplica, mayCreate, role, schema }: Standing, { pending }: Progress): Verdict {
  if (isReplica)
    return problem('it is a replica, which can only be read', 'Name the primary in DATABASE_URL.');
  if (mayCreate) return ok('tables can be created');
  if (pending.length === 0) return ok('tables cannot be created, and need not be');
  return problem(
    `the role ${JSON.stringify(role)} may not create tables${schema === null ? '' : ` in the schema ${JSON.stringify(schema)}`}`,
    'Run `dovetail migrate` with a DATABASE_URL of the role that owns the tables, or grant this one CREATE on the schema.',
  );
}

function checkMigrations({ applied, pending, unknown }: Progress): Verdict {
  if (unknown.length > 0) {
    return problem(
      `the database has migrations of a later version: ${unknown.join(', ')}`,
      'Install the version that has them, or name another database.',
    );
  }
  if (pending.length === 0) return ok(`all ${applied} applied`);
  return ok(`${applied} applied, ${pending.length} pending: the next start applies them`);
}

async function checkTriggers(client: pg.Client, { pending }: Progress): Promise<Verdict> {
  if (pending.length > 0) return skipped('the pending migrations come first');
  const silent = await findSilentTriggers(client);
  if (silent.length === 0) return ok('every change is announced');
  const advice = silent.map(({ table, trigger, state }) =>
    state === 'disabled'
      ? `ALTER TABLE "${table}" ENABLE ALWAYS TRIGGER ${trigger};`
      : `create ${trigger} on "${table}" as the newest migration that names it does;`,
  );
  return problem(
    `changes are not announced: ${silent.map(({ table, trigger, state }) => `${table}.${trigger} is ${state}`).join(', ')}`,
    `As the owner of the tables: ${advice.join(' ')} then start the gateways again, which forget what they cached.`,
  );
}

/** Through a pooler the gateway makes no settings, which would be other clients' as well. */
async function checkPooling(client: pg.Client): Promise<Verdict> {
  if (!(await isPooled(client))) return ok('none stands between');
  try {
    await checkPooler(client);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return problem(error.message, 'Do that, or connect to the server itself.');
  }
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

/** Whether what one connection says is heard by another: not every pooler lets it through. */
async function checkFeed(client: pg.Client, connection: pg.ClientConfig): Promise<Verdict> {
  const channel = `dovetail_doctor_${randomBytes(8).toString('hex')}`;
  const listener = new pg.Client({
    ...connection,
    connectionTimeoutMillis: timeouts,
    query_timeout: timeouts,
  });
  listener.on('error', () => {});
  try {
    await listener.connect();
    // A LISTEN would stay in a session that other clients use.
    if ((await isPooled(listener)) && (await shareSessions(listener, client)))
      throw new Error('the pooler does not give each connection a session of its own');
    await listener.query(`LISTEN ${channel}`);
    const heard = once(listener, 'notification', { signal: AbortSignal.timeout(timeouts) });
    const began = performance.now();
    await Promise.all([heard, client.query(`NOTIFY ${channel}`)]);
    return ok(`a notification arrived within ${Math.ceil(performance.now() - began)} ms`);
  } catch (error) {
    return problem(
      `notifications do not arrive: ${errorText(error)}`,
      'Connect to the server itself, or set its pooler to session mode: without them nothing is cached, and subscriptions stand still.',
    );
  } finally {
    await listener.end().catch(() => {});
  }
}

function checkClock(skew: number): Verdict {
  const seconds = (skew / 1000).toFixed(1);
  return skew <= largestSkew
    ? ok(`${seconds} s from that of the database`)
    : problem(`${seconds} s from that of the database`, 'Set the clocks by NTP on both machines.');
}

async function checkDisk({ DATABASE_URL, DATA_DIR }: Config): Promise<Verdict> {
  if (DATABASE_URL !== undefined) return skipped('nothing is stored here');
  const { bavail, bsize } = await statfs(await nearest(resolve(DATA_DIR)));
  const free = bavail * bsize;
  const says = `${(free / 1024 ** 3).toFixed(1)} GiB are free for DATA_DIR`;
  return free >= leastSpace ? ok(says) : problem(says, 'Make room, or set DATA_DIR to another disk.');
}

async function checkPort({ HOST }: Config, setting: string, port: number): Promise<Verdict> {
  if (port === 0) return ok('any that is free');
  const server = createServer();
  try {
    server.listen(port, HOST);
    await once(server, 'listening');
    server.close();
    return ok(`${port} is free`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'EADDRINUSE')
      return problem(`${HOST} ${port}: ${errorText(error)}`, `Choose another ${setting}, or another HOST.`);
    if (await isGateway(HOST, port)) return ok(`a running gateway has ${port}`);
    return problem(
      `${port} is taken by another program`,
      `Stop it, or set ${setting} to another port; 0 picks a free one.`,
    );
  }
}

/** Whether it is a gateway that listens there, on either of its ports. */
async function isGateway(host: string, port: number): Promise<boolean> {
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const origin = originOf(near, port);
  const says = async (path: string) => {
    const response = await fetch(origin + path, { signal: AbortSignal.timeout(timeouts) });
    return response.text();
  };
  try {
    return (await says('/healthz')) === 'alive\n' || (await says('/metrics')).includes('dovetail_build_info');
  } catch {
    return false;
  }
}

async function checkUpstream(config: Config): Promise<Verdict> {
  if (config.UPSTREAM_URL === undefined) return skipped('there is none');
  try {
    const upstream = createUpstream({ ...upstreamOf(config), timing: { timeout: timeouts, retries: 0 } });
    await upstream.get('/users/me');
    return ok(`${upstream.base} answers, and accepts the token`);
  } catch (error) {
    return problem(errorText(error), 'Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later.');
  }
}

/** The path, or of the folders above it the first that there is. */
async function nearest(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : nearest(dirname(path));
}
