/** The server of the embedded engine: turns of its clients, and what it rejects. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { message, serveEngine } from '../../../src/database/embedded/server.ts';
import { newFolder } from '../../support/newFolder.ts';

/** The name of the clients that are served. */
const name = 'known';

const cleanUps: (() => unknown)[] = [];

const folder = newFolder();
const engine = await PGlite.create();
const server = serveEngine(engine, ['other', name], () => {});
server.listen(join(folder, '.s.PGSQL.5432'));
await once(server, 'listening');
beforeEach(async () => {
  const client = await openClient();
  await client.query(
    'DROP TABLE IF EXISTS note; CREATE TABLE note (id serial PRIMARY KEY, body text UNIQUE)',
  );
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
afterAll(async () => {
  server.stop();
  await engine.close();
});

async function openClient(): Promise<pg.Client> {
  const client = new pg.Client({
    host: folder,
    user: 'postgres',
    database: 'postgres',
    application_name: name,
  });
  // A test that has the server disconnect a client expects the error of the query, not of the connection.
  client.on('error', () => {});
  await client.connect();
  cleanUps.push(() => client.end().catch(() => {}));
  return client;
}

/** The rows of the table, as a client sees them that connects after all others. */
async function notes(): Promise<string[]> {
  const client = await openClient();
  const { rows } = await client.query<{ body: string }>('SELECT body FROM note ORDER BY id');
  return rows.map(({ body }) => body);
}

it('clients at the same time never see rows of a transaction that has not committed', async () => {
  const clients = await Promise.all(Array.from({ length: 8 }, openClient));
  await Promise.all(
    clients.map(async (client, number) => {
      for (let round = 0; round < 5; round++) {
        await client.query('BEGIN');
        const before = await client.query<{ count: string }>('SELECT count(*) FROM note');
        await client.query('INSERT INTO note (body) VALUES ($1)', [`${number}/${round}`]);
        const after = await client.query<{ count: string }>('SELECT count(*) FROM note');
        expect(Number(after.rows[0]?.count)).toBe(Number(before.rows[0]?.count) + 1);
        await client.query(round % 2 === 0 ? 'COMMIT' : 'ROLLBACK');
      }
    }),
  );
  expect(await notes()).toHaveLength(8 * 3);
});

const none = Buffer.alloc(2);
const query = (sql: string) => message('Q', sql);
const parse = (sql: string) => message('P', '', sql, none);
const bind = message('B', '', '', none, none, none);
const execute = message('E', '', Buffer.alloc(4));
const extended = (sql: string) => Buffer.concat([parse(sql), bind, execute]);
const sync = message('S');
const terminate = message('X');

function startup(code: number, ...texts: string[]): Buffer {
  const body = Buffer.from(texts.map((text) => `${text}\0`).join(''));
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length, 0);
  head.writeInt32BE(code, 4);
  return Buffer.concat([head, body]);
}

const startupMessage = startup(0x30000, 'user', 'postgres', 'application_name', name, '');

/** A client that can send invalid messages. */
function openRawClient() {
  const socket = connect(join(folder, '.s.PGSQL.5432'));
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  socket.on('error', () => {});
  cleanUps.push(() => socket.destroy());
  return {
    socket,
    /** Waits until what was received since the last time matches, and returns it. */
    async receive(pattern: RegExp) {
      await expect.poll(() => received, { interval: 5 }).toMatch(pattern);
      const all = received;
      received = '';
      return all;
    },
  };
}

async function openStartedClient() {
  const client = openRawClient();
  client.socket.write(startupMessage);
  await client.receive(idle);
  return client;
}

const idle = /Z\0\0\0.I$/s;
const inTransaction = /Z\0\0\0.T$/s;

describe('a client that disconnects', () => {
  it.each([
    ['in a transaction', [query('BEGIN'), query("INSERT INTO note (body) VALUES ('lost')")], inTransaction],
    ['in a batch without its Sync', [extended("INSERT INTO note (body) VALUES ('lost')")], /C.*INSERT/s],
    ['in a batch with an error', [parse('SELEC')], /syntax error/],
    ['in the middle of a message', [query('BEGIN'), query('SELECT 1').subarray(0, 7)], inTransaction],
  ])('%s leaves no changes behind', async (_, messages, response) => {
    const client = await openStartedClient();
    for (const each of messages) client.socket.write(each);
    await client.receive(response);
    client.socket.destroy();
    expect(await notes()).toEqual([]);
    await (await openClient()).query("INSERT INTO note (body) VALUES ('stays')");
    expect(await notes()).toEqual(['stays']);
  });

  it('right after its last query still has that query run', async () => {
    const client = await openStartedClient();
    client.socket.write(Buffer.concat([query("INSERT INTO note (body) VALUES ('stays')"), terminate]));
    await once(client.socket, 'close');
    expect(await notes()).toEqual(['stays']);
  });

  it('while it waits for its turn has its query discarded, and does not block the next client', async () => {
    const [holder, waiting, next] = [await openClient(), await openStartedClient(), await openClient()];
    const connections = promisify(server.getConnections.bind(server));
    const before = await connections();
    await holder.query('BEGIN');
    waiting.socket.write(query("INSERT INTO note (body) VALUES ('late')"));
    const response = next.query('SELECT 3 AS three');
    waiting.socket.destroy();
    await expect.poll(connections).toBe(before - 1);
    await holder.query('COMMIT');
    expect((await response).rows).toEqual([{ three: 3 }]);
    expect(await notes()).toEqual([]);
  });
});

describe('the protocol', () => {
  it('can arrive byte by byte', async () => {
    const client = openRawClient();
    for (const byte of Buffer.concat([startupMessage, extended("SELECT 'cut' || 5"), sync])) {
      client.socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    await client.receive(/cut5.*Z\0\0\0.I$/s);
  });

  it('does not mistake data for the end of a turn', async () => {
    const [client, other] = [await openStartedClient(), await openClient()];
    // The last column of the last row looks like the message ReadyForQuery.
    client.socket.write(
      Buffer.concat([
        message('P', '', String.raw`SELECT '\x5a0000000549'::bytea`, none),
        message('B', '', '', none, none, Buffer.from([0, 1, 0, 1])),
        // One row of two, so that only the message PortalSuspended follows the data.
        execute,
      ]),
    );
    await client.receive(/Z\0\0\0.I/s);
    const waiting = other.query('SELECT 1');
    client.socket.write(sync);
    await client.receive(idle);
    await waiting;
  });

  it('closes the connection after a message of no length', async () => {
    const client = openRawClient();
    client.socket.write(Buffer.concat([startupMessage, Buffer.from([0x51, 0, 0, 0, 0])]));
    await once(client.socket, 'close');
    expect(await notes()).toEqual([]);
  });
});

describe('a client that is not known', () => {
  const line =
    'the embedded database serves the gateway and its commands alone: to share a database with other clients, move the data to a PostgreSQL server, and set DATABASE_URL: see Backups in docs/deployment.md';

  it.each([
    ['another name', startup(0x30000, 'user', 'postgres', 'application_name', 'psql', '')],
    ['the known name as another setting', startup(0x30000, 'user', name, 'application_name', '', '')],
    ['a request for encryption', startup(80_877_103)],
  ])('and sends %s is rejected with a line that says why, and no other client is', async (_, first) => {
    const other = await openClient();
    const client = openRawClient();
    client.socket.write(Buffer.concat([first, query("INSERT INTO note (body) VALUES ('unknown')")]));
    expect(await client.receive(/E\0\0.*SFATAL\0.*C28000\0/s)).toContain(`M${line}\0`);
    await expect.poll(() => client.socket.readyState).toBe('closed');
    expect((await other.query("SELECT 'well' AS how")).rows).toEqual([{ how: 'well' }]);
    expect(await notes()).toEqual([]);
  });
});

describe('an engine that has failed', () => {
  const panic =
    'SPANIC\0VPANIC\0C53100\0Mcould not write to file "pg_wal/xlogtemp.42": No space left on device\0\0';
  const error = 'SERROR\0VERROR\0C53100\0Mnot VPANIC yet\0\0';

  /** Connects to an engine that responds to every message with an error of these fields. */
  async function connectTo(fields: string) {
    const calls: Uint8Array[] = [];
    // The parts of an engine that the server uses.
    const broken = {
      closed: false,
      Module: {},
      runExclusive: <T>(run: () => Promise<T>) => run(),
      async execProtocolRawStream(messages: Uint8Array, { onRawData }: { onRawData(data: Buffer): void }) {
        calls.push(messages);
        onRawData(message('E', Buffer.from(fields)));
      },
    } as unknown as PGlite;
    const path = join(folder, `.broken-${Math.random()}`);
    const failing = serveEngine(broken, [name], () => {});
    failing.listen(path);
    await once(failing, 'listening');
    cleanUps.push(failing.stop);
    const socket = connect(path);
    socket.on('error', () => {});
    socket.write(startupMessage);
    return { failing, socket, calls };
  }

  it('is recognised by its panic, is not used again, and has its clients disconnected', async () => {
    const { failing, socket, calls } = await connectTo(panic);
    await once(socket.resume(), 'close');
    expect(failing.failed.reason.message).toContain('No space left on device');
    expect(failing.listening).toBe(false);
    await pause(20);
    expect(calls).toHaveLength(1);
  });

  it('is not assumed when only a statement fails', async () => {
    const { failing, socket } = await connectTo(error);
    await once(socket, 'data');
    expect(failing.failed.aborted).toBe(false);
    expect(failing.listening).toBe(true);
  });
});
