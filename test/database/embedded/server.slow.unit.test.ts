import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { serveEngine } from '../../../src/database/embedded/server.ts';

const silenceLimit = 300;

let folder: string;
let engine: PGlite;
let server: ReturnType<typeof serveEngine>;
const cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-socket-'));
  engine = await PGlite.create();
  server = serveEngine(engine, () => {}, { silenceLimit });
  server.listen(join(folder, '.s.PGSQL.5432'));
  await once(server, 'listening');
});
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
  server.close();
  server.closeConnections();
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

async function openClient(): Promise<pg.Client> {
  const client = new pg.Client({ host: folder, user: 'postgres', database: 'postgres' });
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

describe('clients at the same time', () => {
  it('each get the results of their own parameterised queries', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, openClient));
    const askAll = async (client: pg.Client, number: number) => {
      for (let round = 0; round < 6; round++) {
        const sent = `${number}/${round}`;
        // Statements differ in the number and type of parameters, so that a mix-up cannot pass for a result.
        if (round % 3 === 0) {
          const { rows } = await client.query('SELECT $1::text AS a, $2::int AS b', [sent, number]);
          expect(rows).toEqual([{ a: sent, b: number }]);
        } else if (round % 3 === 1) {
          const { rows } = await client.query('SELECT $1::text AS c FROM generate_series(1, $2::int)', [
            sent,
            3,
          ]);
          expect(rows).toEqual([{ c: sent }, { c: sent }, { c: sent }]);
        } else {
          await expect(client.query('SELECT $1::int / 0', [number])).rejects.toThrow('division by zero');
        }
      }
    };
    await Promise.all(clients.map(askAll));
  });

  it('never see rows of a transaction that has not committed', async () => {
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

  it('can send and receive values of megabytes', async () => {
    const [writer, reader] = [await openClient(), await openClient()];
    const body = 'Grüße '.repeat(500_000);
    const [, { rows }] = await Promise.all([
      writer.query('INSERT INTO note (body) SELECT $1 WHERE length($1) > 0', [body.slice(0, 2_000)]),
      reader.query<{ echo: string }>('SELECT $1::text AS echo', [body]),
    ]);
    expect(rows[0]?.echo === body).toBe(true);
    expect(await notes()).toEqual([body.slice(0, 2_000)]);
  });

  it('can continue after an error, inside and outside of a transaction', async () => {
    const [one, other] = [await openClient(), await openClient()];
    await one.query('BEGIN');
    await one.query("INSERT INTO note (body) VALUES ('lost')");
    await expect(one.query('SELEC')).rejects.toThrow('syntax error');
    await expect(one.query('SELECT 1')).rejects.toThrow('current transaction is aborted');
    const waiting = other.query('SELECT 2 AS two');
    await one.query('ROLLBACK');
    expect((await waiting).rows).toEqual([{ two: 2 }]);
    await expect(one.query('SELECT $1::int', ['not a number'])).rejects.toThrow('invalid input syntax');
    expect((await one.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(await notes()).toEqual([]);
  });
});

/** A message of the protocol: its type, and its fields, of which texts end with a zero byte. */
function message(type: string, ...fields: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(
    fields.map((field) => (Buffer.isBuffer(field) ? field : Buffer.from(`${field}\0`))),
  );
  const head = Buffer.alloc(5, type);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}

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

const startupMessage = startup(0x30000, 'user', 'postgres', 'database', 'postgres', '');

/** A client that can send invalid messages. */
interface RawClient {
  socket: Socket;
  /** Waits until what was received since the last time matches, and returns it. */
  receive(pattern: RegExp): Promise<string>;
}

function openRawClient(): RawClient {
  const socket = connect(join(folder, '.s.PGSQL.5432'));
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  socket.on('error', () => {});
  cleanUps.push(() => socket.destroy());
  return {
    socket,
    async receive(pattern) {
      await expect.poll(() => received, { timeout: 5_000, interval: 5 }).toMatch(pattern);
      const all = received;
      received = '';
      return all;
    },
  };
}

async function openStartedClient(): Promise<RawClient> {
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
    ['in a failed transaction', [query('BEGIN'), query('SELEC')], /Z\0\0\0.E$/s],
    ['in a batch without its Sync', [extended("INSERT INTO note (body) VALUES ('lost')")], /C.*INSERT/s],
    ['in a batch with an error', [parse('SELEC')], /syntax error/],
    [
      'in a batch with an error in a transaction',
      [query('BEGIN'), query("INSERT INTO note (body) VALUES ('lost')"), parse('SELEC')],
      /syntax error/,
    ],
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

  it('while it waits for its turn has its query discarded', async () => {
    const [holder, waiting] = [await openClient(), await openStartedClient()];
    const connections = promisify(server.getConnections.bind(server));
    const before = await connections();
    await holder.query('BEGIN');
    waiting.socket.write(query("INSERT INTO note (body) VALUES ('late')"));
    waiting.socket.destroy();
    await expect.poll(connections).toBe(before - 1);
    await holder.query('COMMIT');
    expect(await notes()).toEqual([]);
  });

  it('while it waits for its turn does not block the next client', async () => {
    const [holder, waiting, next] = [await openClient(), await openStartedClient(), await openClient()];
    await holder.query('BEGIN');
    waiting.socket.write(query('BEGIN'));
    const response = next.query('SELECT 3 AS three');
    waiting.socket.destroy();
    await holder.query('COMMIT');
    expect((await response).rows).toEqual([{ three: 3 }]);
  });
});

describe('a client that is idle in a transaction', () => {
  it('is disconnected with a reason once other clients wait', async () => {
    const holder = await openStartedClient();
    holder.socket.write(Buffer.concat([query('BEGIN'), query("INSERT INTO note (body) VALUES ('lost')")]));
    await holder.receive(inTransaction);
    expect(await notes()).toEqual([]);
    expect(await holder.receive(/FATAL/)).toContain('25P03');
    expect(holder.socket.closed).toBe(true);
  });

  it('stays connected while no other client waits', async () => {
    const holder = await openClient();
    await holder.query('BEGIN');
    await pause(2 * silenceLimit);
    await holder.query("INSERT INTO note (body) VALUES ('stays')");
    await holder.query('COMMIT');
    expect(await notes()).toEqual(['stays']);
  });

  it('is not confused with a client whose query takes long', async () => {
    const [busy, waiting] = [await openClient(), await openClient()];
    await busy.query('BEGIN');
    const response = waiting.query('SELECT 1');
    // The engine cannot sleep.
    await busy.query(
      `DO $$ DECLARE start timestamptz := clock_timestamp(); BEGIN
         WHILE clock_timestamp() < start + interval '${2 * silenceLimit} ms' LOOP END LOOP;
       END $$`,
    );
    await busy.query('COMMIT');
    await response;
  });
});

describe('the protocol', () => {
  it.each([
    ['SSL', startup(80_877_103)],
    ['GSS encryption', startup(80_877_104)],
  ])('declines %s, and continues without it', async (_, request) => {
    const client = openRawClient();
    client.socket.write(request);
    expect(await client.receive(/./)).toBe('N');
    client.socket.write(startupMessage);
    await client.receive(idle);
  });

  it('accepts a request to cancel without an effect, and closes its connection', async () => {
    const client = openRawClient();
    client.socket.write(startup(80_877_102, 'a key'));
    await once(client.socket, 'close');
  });

  it('can arrive byte by byte', async () => {
    const client = openRawClient();
    const conversation = Buffer.concat([
      startup(80_877_103),
      startupMessage,
      extended("SELECT 'cut' || 5"),
      sync,
    ]);
    for (const byte of conversation) {
      client.socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    expect(await client.receive(/cut5.*Z\0\0\0.I$/s)).toMatch(/^N/);
  });

  it('can arrive in one piece', async () => {
    const client = openRawClient();
    client.socket.write(
      Buffer.concat([
        startupMessage,
        parse('SELEC'),
        bind,
        execute,
        sync,
        query("SELECT 'one'"),
        extended("SELECT 'two'"),
        sync,
      ]),
    );
    await client.receive(/syntax error.*one.*two.*Z\0\0\0.I$/s);
    expect(await notes()).toEqual([]);
  });

  it.each([
    ['a message of a type that no client sends', Buffer.concat([startupMessage, message('z', 'nonsense')])],
    [
      'a message without a type, in a transaction',
      Buffer.concat([startupMessage, query('BEGIN'), message('\0', '')]),
    ],
    ['a password that was not requested', Buffer.concat([startupMessage, message('p', 'secret')])],
    ['version 2 of the protocol', startup(0x20000, 'user', 'postgres', '')],
    ['version 4 of the protocol', startup(0x40000, 'user', 'postgres', '')],
    ['a request to replicate', startup(0x30000, 'user', 'postgres', 'replication', 'database', '')],
    ['a start-up message without its end', startup(0x30000, 'user', 'postgres')],
    ['an empty start-up message', startup(0x30000)],
  ])('closes the connection of a client that sends %s, and no other', async (_, nonsense) => {
    const other = await openClient();
    const client = openRawClient();
    client.socket.write(nonsense);
    await client.receive(/E\0\0.*SFATAL\0.*C08P01\0/s);
    await expect.poll(() => client.socket.readyState).toBe('closed');
    expect((await other.query("SELECT 'well' AS how")).rows).toEqual([{ how: 'well' }]);
    expect(server.hasFailed()).toBe(false);
  });

  it('skips the rest of a batch after an error, even if it arrives in several parts', async () => {
    const client = await openStartedClient();
    client.socket.write(parse('SELEC'));
    await client.receive(/syntax error/);
    client.socket.write(extended("INSERT INTO note (body) VALUES ('lost')"));
    client.socket.write(sync);
    expect(await client.receive(idle)).toMatch(/^Z/);
    expect(await notes()).toEqual([]);
  });

  it('ends a turn wherever the engine splits its responses', async () => {
    const [client, other] = [await openClient(), await openClient()];
    // The engine passes its responses on in pieces of 8 KB: at some of these lengths, the last message is split.
    for (let length = 8_090; length < 8_150; length++) {
      await client.query(`SELECT repeat('x', 4000) AS a, repeat('x', ${length - 4000}) AS b`);
      // If the turn were not over, the first client would be disconnected as idle.
      await other.query('SELECT 1');
    }
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

  it.each([
    ['a start-up message of no length', Buffer.alloc(8)],
    ['a start-up message of negative length', Buffer.alloc(8, 0xff)],
    ['a start-up message of gigabytes', Buffer.from([0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0])],
    ['a message of no length', Buffer.concat([startupMessage, Buffer.from([0x51, 0, 0, 0, 0])])],
    [
      'a message of negative length',
      Buffer.concat([startupMessage, Buffer.from([0x51, 0xff, 0xff, 0xff, 0xff])]),
    ],
  ])('closes the connection after %s', async (_, bytes) => {
    const client = openRawClient();
    client.socket.write(bytes);
    await once(client.socket, 'close');
    expect(await notes()).toEqual([]);
  });

  it.each([
    ['a simple query', [query('COPY note (body) FROM STDIN')]],
    ['a batch', [extended('copy note (body)\n  from stdin'), sync]],
    [
      'a prepared statement',
      [
        message('P', 'later', 'COPY note FROM STDIN', none),
        sync,
        message('B', '', 'later', none, none, none),
        execute,
        sync,
      ],
    ],
  ])('rejects COPY from the client in %s, and continues', async (_, messages) => {
    const client = await openStartedClient();
    for (const each of messages) client.socket.write(each);
    await client.receive(/cannot copy from a client/);
    client.socket.write(Buffer.concat([message('d', Buffer.from('row\n')), message('c')]));
    client.socket.write(query("INSERT INTO note (body) VALUES ('copy it to stdin')"));
    await client.receive(/INSERT 0 1.*Z\0\0\0.I$/s);
    client.socket.write(message('C', 'Slater'));
    expect(await notes()).toEqual(['copy it to stdin']);
  });

  it('supports COPY to the client', async () => {
    const client = await openStartedClient();
    client.socket.write(query('COPY (SELECT generate_series(1, 3)) TO STDOUT'));
    expect(await client.receive(idle)).toMatch(/1\n.*2\n.*3\n.*COPY 3/s);
  });

  it('waits for a client that reads slowly, without blocking other clients', async () => {
    const [client, other] = [await openStartedClient(), await openClient()];
    client.socket.pause();
    const size = 1_000_000;
    for (let count = 0; count < 20; count++) client.socket.write(query(`SELECT repeat('x', ${size})`));
    expect((await other.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    let received = 0;
    client.socket.on('data', (data) => {
      received += data.length;
    });
    client.socket.resume();
    await expect.poll(() => received, { timeout: 5_000 }).toBeGreaterThan(20 * size);
  });
});

describe('a statement that a client has prepared', () => {
  const prepare = (name: string, sql: string) => message('P', name, sql, none);
  const run = (name: string) => [message('B', '', name, none, none, none), execute];
  const describeIt = message('D', 'Slater');
  const close = message('C', 'Slater');
  const five = prepare('later', "SELECT 'five' AS five");

  // Each group of messages is one turn. Another client has a turn after each of them.
  it.each<[string, Buffer[][], RegExp]>([
    ['can be run in a later turn', [[five], run('later')], /^2.{4}D.*five.*C.*SELECT 1\0Z.{4}I$/s],
    [
      'can be run in each of several later turns',
      [[five], run('later'), run('later')],
      /^2.{4}D.*five.*C.*SELECT 1\0Z.{4}I$/s,
    ],
    ['can be described', [[five], [describeIt]], /^t.{6}T.*five\0/s],
    ['can be run by SQL', [[five], [query('EXECUTE later')]], /^T.*D.*five.*EXECUTE\0|^T.*D.*five/s],
    [
      'is listed in pg_prepared_statements',
      [[five], [query('SELECT name FROM pg_prepared_statements')]],
      /^T.*D.*later/s,
    ],
    ['cannot be prepared twice', [[five], [five]], /^E.*C42P05\0.*"later" already exists/s],
    ['is gone once it is closed', [[five], [close], run('later')], /^E.*C26000\0/s],
    ['can be prepared again once it is closed', [[five], [close, five], run('later')], /^2.*five/s],
    ['is gone after DEALLOCATE', [[five], [query('DEALLOCATE later')], run('later')], /^E.*C26000\0/s],
    ['can be run without a name', [[prepare('', "SELECT 'five'")], run('')], /^2.{4}D.*five/s],
    [
      'is gone after another query if it has no name',
      [[prepare('', 'SELECT 5')], [query('SELECT 6')], run('')],
      /^E.*C26000\0/s,
    ],
    [
      'is gone after a SET if it has no name',
      [[prepare('', 'SELECT 5')], [query('SET work_mem = 9999')], run('')],
      /^E.*C26000\0/s,
    ],
    [
      'does not exist if preparing it has failed',
      [[prepare('later', 'SELECT nothing')], run('later')],
      /^E.*C26000\0.*"later" does not exist/s,
    ],
    [
      'fails with the reason when it cannot be run any more',
      [[prepare('later', 'SELECT body FROM note')], [query('DROP TABLE note')], run('later')],
      /^E.*C42P01\0.*"note" does not exist/s,
    ],
    [
      'has the parameter types that it was prepared with',
      [
        [message('P', 'later', 'SELECT $1', Buffer.from([0, 1, 0, 0, 0, 20]))],
        [query('SELECT parameter_types FROM pg_prepared_statements')],
      ],
      /{bigint}/,
    ],
  ])('%s', async (_, turns, expected) => {
    const [client, other] = [await openStartedClient(), await openClient()];
    let received = '';
    for (const messages of turns) {
      const isQuery = messages[0]?.[0] === 'Q'.charCodeAt(0);
      client.socket.write(Buffer.concat(isQuery ? messages : [...messages, sync]));
      received = await client.receive(idle);
      expect((await other.query('SELECT count(*)::int AS count FROM pg_prepared_statements')).rows).toEqual([
        { count: 0 },
      ]);
    }
    expect(received).toMatch(expected);
  });
});

const hasPsql = spawnSync('psql', ['--version']).status === 0;

describe('psql', () => {
  const psql = async (...commands: string[]) => {
    const child = spawn('psql', [
      '-h',
      folder,
      '-U',
      'postgres',
      '-Atq',
      ...commands.flatMap((each) => ['-c', each]),
    ]);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
    const [code] = await once(child, 'close');
    return { code, output };
  };

  it('writes, reads and lists tables', async ({ skip }) => {
    skip(!hasPsql, 'psql is not installed');
    expect(
      await psql("INSERT INTO note (body) VALUES ('by hand')", 'SELECT body FROM note', String.raw`\dt`),
    ).toEqual({ code: 0, output: 'by hand\npublic|note|table|postgres\n' });
  });

  it('gets an error for a copy from a file, and writes nothing', async ({ skip }) => {
    skip(!hasPsql, 'psql is not installed');
    const { code, output } = await psql(String.raw`\copy note (body) FROM /etc/hostname`);
    expect(code).toBe(1);
    expect(output).toContain('cannot copy from a client');
    expect(await notes()).toEqual([]);
  });
});

describe('an engine that has failed', () => {
  const panic =
    'SPANIC\0VPANIC\0C53100\0Mcould not write to file "pg_wal/xlogtemp.42": No space left on device\0\0';
  const error = 'SERROR\0VERROR\0C53100\0Mnot VPANIC yet\0\0';

  /** Connects to an engine that responds to every message with an error of these fields. */
  async function connectTo(fields: string) {
    const body = Buffer.from(fields);
    const head = Buffer.alloc(5, 'E');
    head.writeInt32BE(4 + body.length, 1);
    const calls: Uint8Array[] = [];
    // The parts of an engine that the server uses.
    const broken = {
      closed: false,
      Module: {},
      runExclusive: <T>(run: () => Promise<T>) => run(),
      async execProtocolRawStream(
        messages: Uint8Array,
        { onRawData }: { onRawData(data: Uint8Array): void },
      ) {
        calls.push(messages);
        onRawData(Buffer.concat([head, body]));
      },
    } as unknown as PGlite;
    const path = join(folder, `.broken-${Math.random()}`);
    const failing = serveEngine(broken, () => {}, { ownName: '' });
    failing.listen(path);
    await once(failing, 'listening');
    cleanUps.push(() => failing.close(), failing.closeConnections);
    const socket = connect(path);
    socket.on('error', () => {});
    // A start-up message without parameters.
    socket.write(Buffer.from([0, 0, 0, 9, 0, 3, 0, 0, 0]));
    return { failing, socket, calls };
  }

  it('is recognised by its panic, is not used again, and has its clients disconnected', async () => {
    const { failing, socket, calls } = await connectTo(panic);
    expect((await failing.failure).message).toContain('No space left on device');
    expect(failing.hasFailed()).toBe(true);
    await once(socket.resume(), 'close');
    expect(failing.listening).toBe(false);
    await pause(20);
    expect(calls).toHaveLength(1);
  });

  it('is not assumed when only a statement fails', async () => {
    const { failing, socket } = await connectTo(error);
    await once(socket, 'data');
    expect(failing.hasFailed()).toBe(false);
    expect(failing.listening).toBe(true);
  });
});
