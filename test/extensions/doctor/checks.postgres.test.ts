/** The findings of the doctor about a database server. */

import { readFile } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { findServer } from '../../../src/database/connection.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { errorText, SetupError } from '../../../src/errors.ts';
import type { Finding } from '../../../src/extensions/doctor/finding.ts';
import { findSilentTriggers } from '../../../src/extensions/doctor/rights.ts';
import { newServerDatabase } from '../../support/gateway.ts';
import { queryOnce } from '../../support/postgres.ts';
import { databaseWith } from '../../support/setUp.ts';
import { examine, problemsWith } from './findings.ts';

const { database } = await databaseWith();

const urlOf = ({ user = '', options = '' } = {}) => {
  const url = new URL(database.pool.options.connectionString ?? '');
  if (user) url.username = user;
  if (options) url.searchParams.set('options', options);
  return url.href;
};
const examineAt = (DATABASE_URL: string, others = {}) => examine({ DATABASE_URL, PORT: '0', ...others });
const problemsAt = (DATABASE_URL: string, others = {}) => problemsWith({ DATABASE_URL, ...others });
const saysOf = (findings: readonly Finding[], check: string) =>
  findings.find((each) => each.check === check)?.says;
const run = (statement: string) => database.pool.query(statement);
/** Runs a statement after the test. */
const finallyRun = (statement: string) => onTestFinished(async () => void (await run(statement)));

/** A role with the rights of docs/deployment.md, which is dropped after the test. */
async function createRole(): Promise<string> {
  const role = `role_${Date.now()}`;
  await run(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
  const page = await readFile('docs/deployment.md', 'utf8');
  const grants = page.match(/^GRANT .* TO dovetail;$/gm) ?? [];
  await run(grants.map((grant) => grant.replace('TO dovetail;', `TO ${role};`)).join(''));
  finallyRun(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  return role;
}

/** Runs the statements of an advice, which begin with this word. */
const follow = (problem: Pick<Finding, 'advice'> | undefined, word: string) =>
  run(problem?.advice?.match(new RegExp(`\\b${word} [^;]*;`, 'g'))?.join('') ?? '');

it('finds no problem on a sound server, and leaves no connection open', async () => {
  const count = async () => {
    const { rows } = await run(
      'SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()',
    );
    return rows[0].count;
  };
  const before = await count();
  const findings = await examineAt(urlOf(), { DATABASE_DIRECT_URL: urlOf() });
  expect(findings.map(({ check, state, says }) => `${state} ${check}: ${says}`)).toEqual([
    expect.stringMatching(/^ok node: /),
    'ok settings: all of them can be used',
    expect.stringMatching(
      /^ok database: PostgreSQL \d+.*, postgresql:\/\/postgres:\*\*\*@127\.0\.0\.1:\d+\/test_\w+$/,
    ),
    'ok database rights: the role has those that requests need',
    expect.stringMatching(/^ok migrations: all \d+ applied$/),
    'ok triggers: every change is announced',
  ]);
  await expect.poll(count).toBe(before);
});

it('says about a server that cannot be used what a start says, with advice', async () => {
  const url = Object.assign(new URL(urlOf()), { pathname: '/none' }).href;
  const error: unknown = await findServer({ url }).catch((thrown) => thrown);
  const advice = expect.stringMatching(/^Make it: createdb .* none/);
  expect(await problemsAt(url)).toEqual([{ check: 'database', says: errorText(error), advice }]);
});

it('has the same message about a search_path without a schema that the role may use as a start', async () => {
  const user = await createRole();
  await run(`REVOKE USAGE ON SCHEMA public FROM PUBLIC, ${user}`);
  finallyRun('GRANT USAGE ON SCHEMA public TO PUBLIC');
  const url = urlOf({ user });
  const [problem, ...others] = await problemsAt(url);
  expect(others).toEqual([]);
  expect(problem).toEqual({
    check: 'database rights',
    says: `its search_path is "$user", public, and it has no schema that the role "${user}" may use`,
    advice: expect.stringContaining(`GRANT USAGE, CREATE ON SCHEMA … TO "${user}"`),
  });
  await expect(migrate({ connectionString: url })).rejects.toThrow(
    new SetupError(`DATABASE_URL cannot be used: ${problem?.says}`),
  );
});

it('finds no problem on a server with an empty database', async () => {
  expect(await problemsAt(await newServerDatabase())).toEqual([]);
});

it('has the same message about tables of another program as a start', async () => {
  const url = await newServerDatabase();
  await queryOnce(url, 'CREATE TABLE "User" ()');
  const [problem, ...others] = await problemsAt(url);
  expect(others).toEqual([]);
  expect(problem).toMatchObject({ check: 'migrations', says: expect.stringMatching(/such as "User"$/) });
  await expect(migrate({ connectionString: url })).rejects.toThrow(problem?.says);
});

it('finds no problem for a role with hostile defaults', async () => {
  const defaults = [
    'DateStyle=SQL',
    'client_encoding=LATIN1',
    'standard_conforming_strings=off',
    'row_security=off',
  ];
  const readOnly = ['default_transaction_read_only=on', 'default_transaction_isolation=serializable'];
  const options = [...defaults, ...readOnly, 'search_path=public,pg_catalog'].map((each) => `-c ${each}`);
  expect(await problemsAt(urlOf({ options: options.join(' ') }))).toEqual([]);
});

it('finds that the role of the direct connection may not apply pending migrations, and only then', async () => {
  const user = await createRole();
  const settings = { DATABASE_URL: urlOf({ user }), PORT: '0' };
  expect(await problemsAt(settings.DATABASE_URL)).toEqual([]);
  expect(await problemsAt(settings.DATABASE_URL, { DATABASE_DIRECT_URL: urlOf() })).toEqual([]);
  await run('UPDATE "_prisma_migrations" SET rolled_back_at = now()');
  finallyRun('UPDATE "_prisma_migrations" SET rolled_back_at = NULL');
  const may = /^0 applied, \d+ pending: the next start applies them$/;
  expect(saysOf(await examine(settings), 'migrations')).toBe(
    `the role "${user}" may not create tables in the schema "public"`,
  );
  expect(saysOf(await examine({ ...settings, DATABASE_DIRECT_URL: urlOf() }), 'migrations')).toMatch(may);
  expect(saysOf(await examineAt(urlOf()), 'migrations')).toMatch(may);
});

it('finds migrations of a later version', async () => {
  await run(`INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at)
    VALUES ('later', '', '99991231_later', now())`);
  finallyRun(`DELETE FROM "_prisma_migrations" WHERE id = 'later'`);
  expect(await problemsAt(urlOf())).toEqual([
    {
      check: 'migrations',
      says: 'it has migrations of another version: 99991231_later',
      advice: 'Install the version that has them, or name another database.',
    },
  ]);
});

it.each([
  ['SELECT ON "LockSegment", "_prisma_migrations"', 'SELECT on "LockSegment", "_prisma_migrations"'],
  ['UPDATE (id) ON "DttTemplate"', 'UPDATE (id) on "DttTemplate"'],
  ['INSERT, UPDATE ON "User", "ApiToken"', 'INSERT on "ApiToken"; UPDATE on "ApiToken", "User"'],
  [
    'ALL ON "RateLimit"',
    'DELETE on "RateLimit"; INSERT on "RateLimit"; SELECT on "RateLimit"; UPDATE on "RateLimit"',
  ],
  // Either right suffices.
  ['UPDATE ON "ApiToken_id_seq"', 'USAGE on "ApiToken_id_seq"'],
])('finds that the role lacks %s, which requests need, and its advice fixes that', async (right, lacks) => {
  const user = await createRole();
  await run(`REVOKE ${right} FROM ${user}`);
  const [problem, ...others] = await problemsAt(urlOf({ user }));
  expect(others).toEqual([]);
  expect(problem).toMatchObject({
    check: 'database rights',
    says: `the role "${user}" lacks rights without which requests fail: ${lacks}`,
  });
  await follow(problem, 'GRANT');
  expect(await problemsAt(urlOf({ user }))).toEqual([]);
});

it('finds triggers that do not fire in every session, and its advice fixes them', async () => {
  await run('ALTER TABLE "LockTemplate" ENABLE TRIGGER announce_update, DISABLE TRIGGER announce_insert');
  // It would fire only in sessions that replicate.
  await run('ALTER TABLE "DttLibraryEntry" ENABLE REPLICA TRIGGER keep_own');
  const [problem, ...others] = await problemsAt(urlOf());
  expect(others).toEqual([]);
  expect(problem).toMatchObject({
    check: 'triggers',
    says: 'changes are not announced or rules not kept: DttLibraryEntry.keep_own fires in some sessions only, LockTemplate.announce_insert is disabled, LockTemplate.announce_update fires in some sessions only',
  });
  await follow(problem, 'ALTER TABLE');
  expect(await problemsAt(urlOf())).toEqual([]);
});

it.each([
  ['is disabled', 'DISABLE TRIGGER USER'],
  // The state of a new trigger, which sessions that replicate skip, and after `pg_restore --disable-triggers`.
  ['fires in some sessions only', 'ENABLE TRIGGER USER'],
  ['is missing', undefined],
])('finds each trigger that %s (%s)', async (state, change) => {
  const client = await database.pool.connect();
  onTestFinished(() => client.release(true));
  expect(await findSilentTriggers(client)).toEqual([]);
  const { rows } = await client.query<{ table: string; trigger: string }>(
    `SELECT relname AS table, tgname AS trigger FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
     WHERE tgname ~ '^(announce|await|forget|keep|library|only)_'`,
  );
  expect(rows.length).toBeGreaterThan(50);
  await client.query('BEGIN');
  for (const { table, trigger } of rows)
    await client.query(change ? `ALTER TABLE "${table}" ${change}` : `DROP TRIGGER ${trigger} ON "${table}"`);
  const found = await findSilentTriggers(client);
  await client.query('ROLLBACK');
  const byName = (one: { table: string; trigger: string }) => `${one.table} ${one.trigger}`;
  // Those that keep a rule have to fire in ordinary sessions alone.
  const wrong = rows.filter(({ trigger }) => change !== 'ENABLE TRIGGER USER' || /^a/.test(trigger));
  expect(found.map(byName).toSorted()).toEqual(wrong.map(byName).toSorted());
  expect(new Set(found.map((each) => each.state))).toEqual(new Set([state]));
});

it('finds triggers that are missing, as on a table that was created anew', async () => {
  await run('DROP TRIGGER announce_insert ON "OssmDevice"; DROP TRIGGER keep_own ON "DttLibraryEntry"');
  const [problem] = await problemsAt(urlOf());
  expect(problem?.says).toBe(
    'changes are not announced or rules not kept: DttLibraryEntry.keep_own is missing, OssmDevice.announce_insert is missing',
  );
  expect(problem?.advice).toContain(
    'create announce_insert on "OssmDevice" as the newest migration that names it does;',
  );
});
