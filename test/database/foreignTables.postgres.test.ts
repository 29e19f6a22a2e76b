/** A database that already has tables of another application is rejected. */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { examine } from '../../src/cli/doctor/checks.ts';
import { migrate } from '../../src/database/migrate.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

let server: TestDatabase;
const name = `app_${process.pid}`;
let url: string;
beforeAll(async () => {
  server = await openTestDatabase();
  const engine = inject('engine');
  if (engine.kind === 'postgres') url = `${engine.url}/${name}`;
});
afterAll(() => server?.close());

const foreignLedger = `CREATE TABLE _prisma_migrations (migration_name text, finished_at timestamptz, rolled_back_at timestamptz);
  INSERT INTO _prisma_migrations VALUES ('20240101000000_app', now(), NULL);`;

describe('a database with tables of another application', () => {
  it.each([
    ['a table that has the name of ours', 'CREATE TABLE "User" (); CREATE TABLE "Post" ()', '"Post", "User"'],
    ['a table of another name', 'CREATE TABLE orders ()', '"orders"'],
    [
      'many tables',
      'CREATE TABLE a (); CREATE TABLE b (); CREATE VIEW c AS SELECT; CREATE TABLE d (); CREATE TABLE e ()',
      '"a", "b", "c", 2 more',
    ],
    ['migrations of its own', `CREATE TABLE "User" (); ${foreignLedger}`, '"User", "_prisma_migrations"'],
  ])('is rejected unchanged by a migration, and reported by the doctor: %s', async (_, tables, named) => {
    await server.pool.query(`CREATE DATABASE ${name}`);
    try {
      const inApp = await connect();
      await inApp.query(tables);
      const count = "SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace";
      const before = (await inApp.query(count)).rows;

      const { hostname: host, port } = new URL(url);
      const says = `the database "${name}" has tables of something else: ${named}`;
      const advice = `Dovetail takes a database of its own. Make it: createdb -h ${host} -p ${port} -U postgres dovetail. Name it in DATABASE_URL; or have a schema of its own here: CREATE SCHEMA dovetail, and ?options=-c%20search_path%3Ddovetail at the end of DATABASE_URL.`;
      await expect(migrate({ connectionString: url })).rejects.toThrow(
        `DATABASE_URL cannot be used: ${says}. ${advice}`,
      );
      const findings = await examine({ DATABASE_URL: url, PORT: '0' });
      expect(findings.filter(({ state }) => state === 'problem')).toEqual([
        { check: 'migrations', state: 'problem', says, advice },
      ]);
      expect((await inApp.query(count)).rows).toEqual(before);

      // Following the advice works.
      await inApp.query('CREATE SCHEMA dovetail');
      expect(await migrate({ connectionString: `${url}?options=-c%20search_path%3Ddovetail` })).not.toEqual(
        [],
      );
      expect((await inApp.query(count)).rows).toEqual(before);
      await inApp.end();
    } finally {
      await server.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });

  it('is not reported when everything in the database belongs to an extension', async () => {
    await server.pool.query(`CREATE DATABASE ${name}`);
    try {
      const inApp = await connect();
      await inApp.query('CREATE EXTENSION pg_stat_statements');
      await inApp.end();
      expect(await migrate({ connectionString: url })).not.toEqual([]);
    } finally {
      await server.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
