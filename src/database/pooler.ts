/**
 * Detects a pooler such as PgBouncer between the gateway and its server, and makes the settings of sessions. In transaction mode each
 * transaction may run in another session, which other clients use as well: it must leave nothing there.
 */

import type pg from 'pg';
import { SetupError } from '../errors.ts';

/** Whether there is a pooler in between: it gives each client an invented process id. */
export async function isPooled(client: pg.Client): Promise<boolean> {
  return (await sessionOf(client)) !== toldSession(client);
}

/**
 * Whether a pooler gave one session to both connections, or several sessions to one of them, in a few attempts. False
 * proves nothing: a connection may get the same session again by chance.
 */
export async function shareSessions(one: pg.Client, other: pg.Client): Promise<boolean> {
  const ofOne = new Set<number | undefined>();
  const ofOther = new Set<number | undefined>();
  for (let round = 0; round < 5; round++) {
    ofOne.add(await sessionOf(one));
    // Twice: two sessions that a pooler hands out in turn would otherwise look like one for each connection.
    ofOther.add(await sessionOf(other));
    ofOther.add(await sessionOf(other));
  }
  return ofOne.size > 1 || ofOther.size > 1 || [...ofOne].some((session) => ofOther.has(session));
}

async function sessionOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
}

/** The process id that the connection was told when it began. */
function toldSession(client: pg.Client): number | null {
  // `pg` has it, though its types do not say so.
  return (client as pg.Client & { readonly processID: number | null }).processID;
}

/** The settings of a session that statements rely on: the value to set, and the accepted values. Server or role may have other defaults. */
const reliedOn: Readonly<Record<string, readonly [value: string, accepted: RegExp]>> = {
  // Times are read as PostgreSQL writes them.
  DateStyle: ['ISO', /^ISO/],
  // With less, numbers lose digits.
  extra_float_digits: ['1', /^[123]$/],
  standard_conforming_strings: ['on', /^on$/],
  array_nulls: ['on', /^on$/],
  // A statement that meets another one is to wait for it, not to fail.
  default_transaction_isolation: ['read committed', /^read (un)?committed$/],
  default_transaction_read_only: ['off', /^off$/],
};

/**
 * The statements that set up a session that no other client uses. They also switch off its idle timeout: the gateway listens in it,
 * or keeps it in its pool. Not every server has that setting.
 */
export function sessionSettings(more: Readonly<Record<string, string>> = {}): string {
  const values = Object.entries(reliedOn).map(([name, [value]]) => [name, value] as const);
  return [
    ...[...values, ...Object.entries(more)].map(([name, value]) => `SET ${name} = '${value}'`),
    `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'`,
  ].join('; ');
}

/** Sets up the session of a connection to a server, unless there is a pooler: other clients may use the session as well. */
export async function makeSessionSettings(client: pg.Client, server: pg.ClientConfig): Promise<void> {
  // The embedded engine has only its own defaults.
  if (server.connectionString === undefined || (await isPooled(client))) return;
  await client.query(sessionSettings());
}

/**
 * Makes sure that the gateway can work through a pooler, without settings of its own.
 * @throws {SetupError} with a line that says what to change.
 */
export async function checkPooler(client: pg.Client): Promise<void> {
  await client.query('BEGIN').catch((error: Error) => {
    throw new SetupError(
      `DATABASE_URL names a pooler without transactions, but takes one with: set its pool_mode to transaction or session (${error.message}).`,
    );
  });
  await client.query('COMMIT');
  const { rows } = await client.query<{ role: string; name: string; setting: string }>(
    `SELECT quote_ident(current_user) AS role, name, setting FROM pg_settings WHERE name IN ('${Object.keys(reliedOn).join("', '")}')`,
  );
  const wrong = rows.filter(({ name, setting }) => !reliedOn[name]?.[1].test(setting));
  if (wrong.length === 0) return;
  const changes = wrong.map(({ role, name }) => `ALTER ROLE ${role} SET ${name} = '${reliedOn[name]?.[0]}';`);
  throw new SetupError(
    `DATABASE_URL names a pooler, through which sessions are used as they are. Run ${changes.join(' ')} and have the pooler reconnect.`,
  );
}
