/**
 * Connections to a server: their settings, their timeouts for silent servers, and a pooler such as PgBouncer in between. In
 * transaction mode of a pooler each transaction may run in another session, which other clients use as well: it must leave
 * nothing there.
 */

import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { UnusableDatabase } from '../errors.ts';

/** How long, in milliseconds, to wait for a connection. */
export const longestConnecting = 5_000;

/** How long, in milliseconds, a read of a start may take. */
const startStatementTimeout = 15_000;

/** How long, in milliseconds, a server may take to end a connection. */
const longestEnding = 1_000;

/** A pool whose connections may break without ending the process. */
export class Pool extends pg.Pool {
  constructor(config: pg.PoolConfig) {
    super(config);
    // A connection that breaks while idle is replaced at the next query; without a listener it would end the process.
    this.on('error', () => {});
    // The pool removes its own listener from a connection that it hands out. One packet may contain both a response, after which the
    // connection is handed out, and an error that ends the connection. Both are read before the code that waits for the connection
    // runs. Without a listener the error would end the process.
    this.on('connect', (client) => client.on('error', () => {}));
  }
}

export type Session = ReturnType<typeof createSession>;

/** @param statement how long, in milliseconds, a statement may take. */
export function createSession(connection: pg.ClientConfig, statement = startStatementTimeout) {
  const socket = new Socket();
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: longestConnecting,
    query_timeout: statement,
    stream: () => socket,
  });
  // A lost connection fails the query at hand; without a listener it would end the process as well.
  client.on('error', () => {});
  return {
    /** Not connected yet. To inspect a session without changing its settings, connect the client itself. */
    client,
    /** Connects the client, with the settings that statements rely on. */
    async connect() {
      await client.connect();
      await setUpSession(client, connection);
    },
    /** Ends the connection, even if the server does not respond. */
    async close() {
      const ended = client.end().catch(() => {});
      await Promise.race([ended, sleep(longestEnding, undefined, { ref: false })]);
      socket.destroy();
    },
    /** Cuts the connection, without a word to the server. */
    cut: () => void socket.destroy(),
  };
}

/**
 * Ends the connection, and fails its statement, if the server sends nothing for this many milliseconds while a statement runs. The
 * only timer is that of the socket. The option `query_timeout` of `pg` has a timer for each statement and wraps its callback, so
 * that objects of requests survive minor garbage collections: that took a tenth of the processor time of a small read.
 * @param client must be connected, since its socket is replaced when it begins TLS.
 */
export function endWhenSilent(client: pg.ClientBase, longest: number): void {
  const connected = openedParts(client);
  const { stream } = connected.connection;
  // Not a callback of `setTimeout`, which is called only once: the first timeout may pass while no statement runs.
  stream.setTimeout(longest).on('timeout', () => {
    // The message is that of `pg`: see `isUnresponsive`.
    if (!connected.readyForQuery) stream.destroy(new Error('Query read timeout'));
  });
}

/** Members that the types of `pg` leave out or describe more generally. `readyForQuery` is false while a statement runs. */
const openedParts = (client: pg.ClientBase) =>
  client as unknown as { connection: { stream: Socket }; readyForQuery: boolean };

/** Ends a connection at once, and fails its statement with the message. Its pool opens another one when it needs it. */
export function endConnection(client: pg.ClientBase, message: string): void {
  openedParts(client).connection.stream.destroy(new Error(message));
}

/** Whether a query timed out on an open connection. `pg` has no code for that. */
export function isUnresponsive(error: unknown): boolean {
  return error instanceof Error && /\bQuery read timeout\b/.test(error.message);
}

/** What an operator is told of a silent database. */
export const unresponsive = 'the database took the connection and then did not respond in time';

/** Whether there is a pooler in between: it gives each client an invented process id. */
export async function isPooled(client: pg.Client): Promise<boolean> {
  // `pg` has the process id that the connection was told when it began, though its types do not say so.
  const { processID } = client as pg.Client & { readonly processID: number | null };
  return (await sessionOf(client)) !== processID;
}

/**
 * Whether a pooler gave one session to both connections, or several sessions to one of them, in a few attempts. False
 * proves nothing: a connection may get the same session again by chance.
 */
async function sharesSession(one: pg.Client, other: pg.Client): Promise<boolean> {
  const [ofOne, ofOther] = [await sessionOf(one), await sessionOf(other)];
  if (ofOne === ofOther) return true;
  for (let round = 0; round < 5; round++) {
    // Twice: two sessions that a pooler hands out in turn would otherwise look like one for each connection.
    const others = [await sessionOf(other), await sessionOf(other)];
    if ((await sessionOf(one)) !== ofOne || others.some((session) => session !== ofOther)) return true;
  }
  return false;
}

/** @throws if a LISTEN would stay in a session that other clients use: they would get the notifications. */
export async function checkListener(listener: pg.Client, other: pg.Client): Promise<void> {
  if ((await isPooled(listener)) && (await sharesSession(listener, other)))
    throw new Error('the pooler does not give each connection a session of its own');
}

async function sessionOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid;
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
export function settingsText(more: Readonly<Record<string, string>> = {}): string {
  const values = Object.entries(reliedOn).map(([name, [value]]) => [name, value] as const);
  return [
    ...[...values, ...Object.entries(more)].map(([name, value]) => `SET ${name} = '${value}'`),
    `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'`,
  ].join('; ');
}

/** Sets up the session of a connection to a server, unless there is a pooler: other clients may use the session as well. */
export async function setUpSession(client: pg.Client, server: pg.ClientConfig): Promise<void> {
  // The embedded engine has only its own defaults.
  if (server.connectionString === undefined || (await isPooled(client))) return;
  await client.query(settingsText());
}

/**
 * Makes sure that the gateway can work through a pooler, without settings of its own.
 * @throws {UnusableDatabase} with a line that says what to change.
 */
export async function checkPooler(client: pg.Client): Promise<void> {
  await client.query('BEGIN').catch((error: Error) => {
    throw new UnusableDatabase(
      `DATABASE_URL names a pooler without transactions, but takes one with: set its pool_mode to transaction or session (${error.message})`,
    );
  });
  await client.query('COMMIT');
  const { rows } = await client.query<{ role: string; name: string; setting: string }>(
    `SELECT quote_ident(current_user) AS role, name, setting FROM pg_settings WHERE name IN ('${Object.keys(reliedOn).join("', '")}')`,
  );
  const wrong = rows.filter(({ name, setting }) => !reliedOn[name]?.[1].test(setting));
  if (wrong.length === 0) return;
  const changes = wrong.map(({ role, name }) => `ALTER ROLE ${role} SET ${name} = '${reliedOn[name]?.[0]}';`);
  throw new UnusableDatabase(
    `DATABASE_URL names a pooler, through which sessions are used as they are. Run ${changes.join(' ')} and have the pooler reconnect`,
  );
}
