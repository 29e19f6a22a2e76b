/** A database that already has tables of another application is rejected. */

import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { newServerDatabase, openAt } from '../support/gateway.ts';

let inApp: pg.Client;
let url: string;
beforeEach(async () => {
  url = await newServerDatabase();
  inApp = new pg.Client({ connectionString: url });
  await inApp.connect();
});
afterEach(() => inApp.end());

const foreignLedger = `CREATE TABLE _prisma_migrations (migration_name text, finished_at timestamptz, rolled_back_at timestamptz);
  INSERT INTO _prisma_migrations VALUES ('20240101000000_app', now(), NULL);`;

it.each([
  ['CREATE TABLE a (); CREATE TABLE b (); CREATE VIEW c AS SELECT; CREATE TABLE d ()', '"a", "b", "c"'],
  [`CREATE TABLE "User" (); ${foreignLedger}`, '"User"'],
])('a migration leaves other tables alone: %s', async (tables, named) => {
  await inApp.query(tables);
  const count = "SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace";
  const before = (await inApp.query(count)).rows;
  const says = `the database "${new URL(url).pathname.slice(1)}" has tables of something else, such as ${named}`;
  await expect(migrate({ connectionString: url })).rejects.toThrow(`DATABASE_URL cannot be used: ${says}`);
  // Following the advice of doctor works.
  await inApp.query('CREATE SCHEMA dovetail');
  const opened = await openAt(`${url}?options=-c%20search_path%3Ddovetail`);
  expect(await opened.client.user.count()).toBe(0);
  await opened.close();
  expect((await inApp.query(count)).rows).toEqual(before);
});

it('a migration takes no notice of what belongs to an extension', async () => {
  await inApp.query('CREATE EXTENSION pg_stat_statements');
  expect(await migrate({ connectionString: url })).not.toEqual([]);
});
