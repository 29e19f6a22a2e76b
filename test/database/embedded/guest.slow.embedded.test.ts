/** Guests, which are other clients of the embedded database of a gateway: nothing that they do affects the gateway. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAccount } from '../../support/accounts.ts';
import { graphqlOnce, openTestGateway, rest, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
let folder: string;
let token: string;
let template: number;
const cleanUps: (() => unknown)[] = [];

beforeAll(async () => {
  gateway = await openTestGateway();
  folder = gateway.database.pool.options.host ?? '';
  const account = await createAccount(gateway.database.client, 'alice');
  token = account.token;
  template = account.dttTemplates[0] ?? 0;
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
afterAll(() => gateway?.close());

interface Ended {
  code: number | null;
  output: string;
}

async function run(program: string, args: string[], input = '', env = {}): Promise<Ended> {
  const child = spawn(program, ['-h', folder, '-U', 'postgres', ...args], {
    env: { ...process.env, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  return { code, output };
}

/** Runs lines in psql, one after the other. */
const psql = (...lines: string[]) => run('psql', ['-AtqX'], lines.map((line) => `${line}\n`).join(''));

async function openGuest(settings: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ host: folder, user: 'postgres', database: 'postgres', ...settings });
  client.on('error', () => {});
  await client.connect();
  cleanUps.push(() => client.end().catch(() => {}));
  return client;
}

const rename = (name: string) => `UPDATE public."DttTemplate" SET name = '${name}' WHERE id = ${template}`;

/** The name of the template in both APIs, which has to be the same. */
async function nameServed(): Promise<string> {
  const overRest = await rest(gateway, token, `/dtt/templates/${template}`);
  const query = `{ dttTemplate(databaseId: ${template}) { name } }`;
  const { data } = await graphqlOnce(gateway, token, query);
  expect(overRest.body.data).toMatchObject({ name: data.dttTemplate.name });
  return data.dttTemplate.name;
}

/** Checks that the gateway is ready, receives changes of a guest, and has its own settings in its session. */
async function expectUnaffected(name: string): Promise<void> {
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  expect(gateway.feed.listening).toBe(true);
  await nameServed();
  expect(await psql(rename(name))).toEqual({ code: 0, output: '' });
  expect(await nameServed()).toBe(name);
  const { rows } = await gateway.database.pool.query(
    `SELECT current_setting('search_path') AS path, current_setting('client_encoding') AS encoding, current_user AS user,
       current_setting('DateStyle') AS dates, current_setting('TimeZone') AS zone, pg_my_temp_schema()::int AS temp,
       current_setting('default_transaction_read_only') AS "readOnly", ARRAY(SELECT pg_listening_channels()) AS channels,
       current_setting('session_replication_role') AS triggers,
       (SELECT count(*)::int FROM pg_prepared_statements WHERE name <> '') AS statements,
       (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory') AS locks,
       (SELECT count(*)::int FROM pg_cursors WHERE is_holdable) AS cursors`,
  );
  expect(rows).toEqual([
    {
      path: 'public',
      encoding: 'UTF8',
      user: 'postgres',
      dates: 'ISO, MDY',
      zone: 'UTC',
      temp: expect.any(Number),
      readOnly: 'off',
      channels: ['dovetail'],
      triggers: 'origin',
      statements: 0,
      locks: 0,
      cursors: 0,
    },
  ]);
}

const isInstalled = ['psql', 'pg_dump'].every((each) => spawnSync(each, ['--version']).status === 0);

/** Dumps the database, unless pg_dump is older than the engine: then it disconnects once it has made its settings. */
async function dump(args: string[], expected: RegExp): Promise<undefined> {
  const { code, output } = await run('pg_dump', args);
  if (output.includes('server version mismatch')) {
    process.stdout.write(
      'pg_dump is older than the embedded PostgreSQL: it made its settings, and no dump\n',
    );
    return;
  }
  expect(output).toMatch(expected);
  expect(code).toBe(0);
}

/** What a guest does. Each returns the name that it gave the template, if any. */
const sessions: [string, () => Promise<string | undefined>][] = [
  ['a plain dump', () => dump([], /CREATE TABLE public."User"/)],
  ['a dump in the custom format', () => dump(['-Fc'], /^PGDMP/)],
  [
    'settings, which apply to its next statements',
    async () => {
      const { output } = await psql(
        "SET search_path = ''; SET DateStyle = 'German'; SET TimeZone = 'Asia/Tokyo';",
        'SET client_encoding = sql_ascii;',
        'SET work_mem = 9999;',
        'SHOW search_path;',
        'SHOW DateStyle;',
        'SHOW TimeZone;',
        'SHOW client_encoding;',
        'SHOW work_mem;',
      );
      expect(output).toBe('""\nGerman, DMY\nAsia/Tokyo\nSQL_ASCII\n9999kB\n');
      return undefined;
    },
  ],
  [
    'options in PGOPTIONS, which apply to this guest only',
    async () => {
      const PGOPTIONS = String.raw`-c search_path=pg_catalog,\ elsewhere -cDateStyle=German --work-mem=9999`;
      const shown = ['search_path', 'DateStyle', 'work_mem'].flatMap((name) => ['-c', `SHOW ${name}`]);
      const { output } = await run('psql', ['-AtqX', ...shown], '', { PGOPTIONS });
      expect(output).toBe('pg_catalog, elsewhere\nGerman, DMY\n9999kB\n');
      return undefined;
    },
  ],
  [
    'an encoding that the engine cannot convert, which is an error',
    async () => {
      const { output } = await psql(
        'SET client_encoding = latin1;',
        `SELECT name || 'ü' FROM public."DttTemplate" LIMIT 1;`,
        "SELECT convert_to('ü', 'latin1');",
        String.raw`\encoding latin1`,
        "SELECT 'ü';",
      );
      expect(output).toContain('Conversion between LATIN1 and UTF8 is not supported');
      expect(output).toMatch(/ü\n$/);
      return undefined;
    },
  ],
  [
    'another role, and another user',
    async () => {
      const role = await psql(
        'SET ROLE pg_read_all_data;',
        'SELECT current_user;',
        `${rename('not allowed')};`,
      );
      expect(role.output).toMatch(/^pg_read_all_data\n.*permission denied/);
      await nameServed();
      const user = await psql(
        'CREATE ROLE bob;',
        'SET SESSION AUTHORIZATION bob;',
        'SELECT current_user;',
        'SELECT count(*) FROM public."User";',
      );
      expect(user.output).toMatch(/^bob\n.*permission denied/);
      expect(await nameServed()).not.toBe('not allowed');
      return undefined;
    },
  ],
  [
    'DISCARD ALL, UNLISTEN and a change that is not announced',
    async () => {
      await psql('DISCARD ALL;', 'UNLISTEN *;');
      await psql(`BEGIN; UNLISTEN *;`, `${rename('unheard')};`, 'COMMIT;');
      return 'unheard';
    },
  ],
  [
    'writes without triggers',
    async () => {
      await psql('SET session_replication_role = replica;', `${rename('replicated')};`);
      return 'replicated';
    },
  ],
  [
    'a temporary table with the name of one of the gateway, which is dropped with a notice',
    async () => {
      const { output } = await psql(
        'CREATE TEMP TABLE "DttTemplate" AS SELECT * FROM "DttTemplate" WHERE false;',
        'CREATE TEMP TABLE "User" (id int);',
        'SELECT count(*) > 0 FROM "User";',
      );
      expect(output).toMatch(/NOTICE: .*temporary tables/);
      expect(output).toMatch(/\nt\n$/);
      return undefined;
    },
  ],
  [
    'prepared statements, cursors and advisory locks that it leaves',
    async () => {
      const { output } = await psql(
        'PREPARE one AS SELECT 1;',
        'EXECUTE one;',
        'BEGIN;',
        'DECLARE all_users CURSOR WITH HOLD FOR SELECT * FROM "User";',
        'COMMIT;',
        'FETCH all_users;',
        'SELECT pg_advisory_lock(1);',
        'LISTEN elsewhere;',
      );
      for (const what of ['PREPARE', 'cursors WITH HOLD', 'advisory locks', 'LISTEN'])
        expect(output).toMatch(new RegExp(`NOTICE: .*${what}`));
      return undefined;
    },
  ],
  [
    'a transaction during which it is killed',
    async () => {
      const child = spawn('psql', ['-h', folder, '-U', 'postgres', '-AtqX']);
      child.stdin.write(
        `SET work_mem = 9999; BEGIN; ${rename('lost')}; SET ROLE pg_monitor; SELECT 'there';\n`,
      );
      await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await once(child, 'exit');
      expect(await nameServed()).not.toBe('lost');
      return undefined;
    },
  ],
  [
    'COPY, LOCK and repeated statements',
    async () => {
      const { output } = await psql(
        'COPY (SELECT generate_series(1, 3)) TO STDOUT;',
        'BEGIN; LOCK TABLE "User"; COMMIT;',
        ...Array.from({ length: 5 }, () => "SELECT 'again';"),
      );
      expect(output).toBe(`1\n2\n3\n${'again\n'.repeat(5)}`);
      return undefined;
    },
  ],
  [
    'errors in a batch, and a read-only session',
    async () => {
      const { code } = await run('psql', ['-AtqX', '-c', 'SELECT 1; SELEC; SELECT 2']);
      expect(code).toBe(1);
      await psql('SET default_transaction_read_only = on;', `${rename('read-only')};`);
      expect(await nameServed()).not.toBe('read-only');
      return undefined;
    },
  ],
  [
    'a pool that runs DISCARD ALL on its connections',
    async () => {
      const clients = await Promise.all([openGuest(), openGuest()]);
      for (let round = 0; round < 3; round++) {
        await Promise.all(
          clients.map(async (client, number) => {
            await client.query({ name: 'same', text: `SELECT ${number} AS number` });
            // The other client's statement of the same name is a separate one.
            const again = await client.query({ name: 'same', text: `SELECT ${number} AS number` });
            expect(again.rows).toEqual([{ number }]);
          }),
        );
      }
      for (const client of clients) await client.query('DISCARD ALL');
      return undefined;
    },
  ],
  [
    'a huge result that it does not read',
    async () => {
      const socket = connect(join(folder, '.s.PGSQL.5432'));
      cleanUps.push(() => socket.destroy());
      socket.pause();
      const hello = Buffer.from('\0\0\0\x17\0\x03\0\0user\0postgres\0\0', 'latin1');
      hello.writeInt32BE(hello.length, 0);
      const sql = Buffer.from("Q\0\0\0\0SELECT repeat('x', 1000000) FROM generate_series(1, 20)\0", 'latin1');
      sql.writeInt32BE(sql.length - 1, 1);
      socket.write(Buffer.concat([hello, sql]));
      await once(socket, 'readable');
      return undefined;
    },
  ],
];

describe('the gateway responds correctly and receives changes after', () => {
  it.for(sessions)('%s', async ([what, visit], { skip }) => {
    skip(!isInstalled, 'psql and pg_dump are not installed');
    // So that a response is cached.
    await nameServed();
    await nameServed();
    const renamed = await visit();
    if (renamed !== undefined) expect(await nameServed()).toBe(renamed);
    await expectUnaffected(`after ${what}`);
  });
});
