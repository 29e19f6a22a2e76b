/** A gateway behind a pooler in transaction mode that has a direct connection to the server as well. */

import { tmpdir } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { examine } from '../../../src/cli/doctor/checks.ts';
import { openDatabase } from '../../../src/database/database.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import {
  openTestDatabase,
  openTestGateway,
  postJson,
  rest,
  type TestDatabase,
  withClient,
} from '../../support/gateway.ts';
import { openTcpProxy } from '../../support/tcpProxy.ts';
import { openTransactionPooler } from '../../support/transactionPooler.ts';

let database: TestDatabase;
let other: TestDatabase;
let alice: Account;
let url: string;
beforeAll(async () => {
  [database, other] = await Promise.all([openTestDatabase(), openTestDatabase()]);
  alice = await createAccount(database.client, 'alice');
  url = database.pool.options.connectionString ?? '';
});
afterAll(async () => {
  await database?.close();
  await other?.close();
});

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

const bounds = { connections: 3, statement: 5_000 };

async function openPooler() {
  const pooler = await openTransactionPooler(url, 6);
  pooler.carryNames(false);
  undo.push(pooler.close);
  return pooler;
}

const open = (DATABASE_URL: string, DATABASE_DIRECT_URL: string) =>
  openDatabase({ DATABASE_URL, DATABASE_DIRECT_URL, DATA_DIR: tmpdir() }, bounds);

const shown = (text: string) => text.replace(':postgres@', ':***@');

describe('a direct connection beside a pooler in transaction mode', () => {
  it('receives changes, so that responses are cached', async () => {
    const gateway = await openTestGateway(withClient(await open((await openPooler()).url, url)));
    undo.push(gateway.close);
    expect(gateway.feed.listening).toBe(true);
    const chip = async () => (await rest(gateway, alice.token, `/ossm/${alice.ossmDevices[0]}`)).body.data;
    for (let time = 0; time < 3; time++) await chip();
    expect(gateway.responseCache.counters.hits).toBeGreaterThan(0);
    await database.pool.query(`UPDATE "OssmDevice" SET chip = 'new' WHERE id = ${alice.ossmDevices[0]}`);
    await expect.poll(chip).toMatchObject({ chip: 'new' });
    for (const template of alice.dttTemplates) {
      const path = `/dtt/templates/${template}`;
      expect((await postJson(gateway, alice.token, path, { isActive: true })).status).toBe(200);
      const { body } = await rest(gateway, alice.token, '/dtt/templates/active');
      expect(body.data).toMatchObject({ id: template });
    }
  });

  it('applies migrations, with a role that may differ from the one of the pooler', async () => {
    const name = new URL(url).pathname.slice(1);
    const role = `reader_${process.pid}`;
    await database.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
    await database.pool.query(`GRANT CONNECT ON DATABASE ${name} TO ${role}`);
    undo.push(() => database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    await database.pool.query(
      `DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO ${role};
       ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO ${role}`,
    );
    const limited = new URL(url);
    limited.username = role;
    await expect(openDatabase({ DATABASE_URL: limited.href, DATA_DIR: tmpdir() })).rejects.toThrow(
      /may not create tables in the schema/,
    );
    const opened = await open(limited.href, url);
    undo.push(opened.close);
    const { rows } = await opened.pool.query<{ role: string }>('SELECT current_user AS role');
    expect(rows).toEqual([{ role }]);
  });

  it('that leads to another database is rejected by the gateway and by the doctor', async () => {
    const elsewhere = other.pool.options.connectionString ?? '';
    const [here, there] = [url, elsewhere].map((each) => new URL(each).pathname.slice(1));
    const where = `leads to the database "${there}", and DATABASE_URL to "${here}"`;
    await expect(open(url, elsewhere)).rejects.toThrow(
      `DATABASE_DIRECT_URL is "${shown(elsewhere)}", but ${where}. Name the same database as DATABASE_URL, past its pooler.`,
    );
    expect(await examine({ DATABASE_URL: url, DATABASE_DIRECT_URL: elsewhere, PORT: '0' })).toContainEqual(
      expect.objectContaining({ state: 'problem', says: `${shown(elsewhere)} ${where}` }),
    );
  });

  it('that leads to another schema is rejected', async () => {
    await database.pool.query('CREATE SCHEMA beside');
    await expect(open(url, `${url}?options=-c%20search_path%3Dbeside`)).rejects.toThrow(
      'but leads to the schema "beside", and DATABASE_URL to "public".',
    );
  });

  it('that fails is reported with DATABASE_DIRECT_URL', async () => {
    await expect(open(url, 'postgresql://me:secret@127.0.0.1:1/app')).rejects.toThrow(
      'DATABASE_DIRECT_URL is "postgresql://me:***@127.0.0.1:1/app", but cannot be reached: connect ECONNREFUSED 127.0.0.1:1. Start the server, or correct DATABASE_DIRECT_URL.',
    );
  });
});

it('a change feed stops listening once its two connections lead to different databases', async () => {
  const line = await openTcpProxy(database);
  undo.push(line.close);
  const opened = await open(line.url, url);
  const feed = await opened.openChangeFeed();
  undo.push(opened.close, feed.close);
  expect(feed.listening).toBe(true);
  // As when a pooler gets a new server, and the previous one still runs.
  line.redirect(other);
  await line.terminate();
  await expect.poll(() => feed.listening).toBe(false);
});
