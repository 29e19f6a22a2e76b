/** Checks of a database server: those of a start, and what no start looks for: rights, and triggers that do not fire. */

import pg from 'pg';
import { connectionError, findServer, type ServerUrls, serverOf } from '../../database/connection.ts';
import {
  findForeignTables,
  findPathProblem,
  findSchemaProblem,
  findVersionProblem,
  readProgress,
} from '../../database/migrate.ts';
import { createSession } from '../../database/session.ts';
import { SetupError, withoutPassword } from '../../errors.ts';
import type { Found } from '../../extensionPoints.ts';
import { connectionAdvice, foreignTablesAdvice, schemaAdvice } from './advice.ts';
import { type Finding, runChecks } from './finding.ts';
import { findMissingRights, findSilentTriggers } from './rights.ts';

/** How long, in milliseconds, a check waits for a statement. */
const timeout = 5_000;

/** A server that a start would use. */
interface Server {
  readonly client: pg.Client;
  /** For migrations: of DATABASE_DIRECT_URL, or else the same as `client`. */
  readonly direct: pg.Client;
  readonly role: string;
}

export async function examineServer(urls: ServerUrls): Promise<Finding[]> {
  const { url, directUrl } = urls;
  const session = createSession(serverOf(url), timeout);
  const direct = directUrl === undefined ? session : createSession(serverOf(directUrl), timeout);
  const { client } = session;
  try {
    await findServer(urls);
    await session.connect();
    if (direct !== session) await direct.connect();
    const { rows } = await client.query<{ version: string; role: string }>(
      `SELECT current_setting('server_version') AS version, current_user AS role`,
    );
    const [{ version, role } = { version: '', role: '' }] = rows;
    const server = { client, direct: direct.client, role };
    return await runChecks([
      ['database', () => `PostgreSQL ${version}, ${withoutPassword(url)}`],
      ['database rights', () => checkRights(server), true],
      ['migrations', () => checkMigrations(server), true],
      ['triggers', () => checkTriggers(server)],
    ]);
  } catch (error) {
    // With the words of a start.
    const { message, cause } = error instanceof SetupError ? error : connectionError(url, error);
    const advice = connectionAdvice(client, cause, url);
    return [{ check: 'database', state: 'problem', says: message, advice }];
  } finally {
    await Promise.all([session.close(), direct.close()]);
  }
}

async function checkRights({ client, role }: Server): Promise<Found> {
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

const quoted = (name: string) => pg.escapeIdentifier(name);

async function checkMigrations({ client, direct }: Server): Promise<Found> {
  const foreign = await findForeignTables(client);
  if (foreign) return { says: foreign, advice: foreignTablesAdvice };
  const { applied, pending, unknown } = await readProgress(client);
  const other = findVersionProblem(unknown);
  if (other) return { says: other, advice: 'Install the version that has them, or name another database.' };
  if (pending.length === 0) return `all ${applied} applied`;
  // The role of the direct connection applies them.
  const unwritable = await findSchemaProblem(direct);
  if (unwritable) return { says: unwritable, advice: schemaAdvice(quoted(direct.user ?? '')) };
  return `${applied} applied, ${pending.length} pending: the next start applies them`;
}

async function checkTriggers({ client }: Server): Promise<Found> {
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
