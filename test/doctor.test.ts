import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examine, type Finding } from '../src/doctor.ts';
import { openTestDatabase, type TestDatabase } from './gateway.ts';

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ state }) => state === 'problem');
const found = (findings: readonly Finding[], check: string) => findings.find((each) => each.check === check);

describe('dovetail doctor, of a server', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database?.close());

  const urlOf = ({ name = '', user = '' }) => {
    const url = new URL(database.pool.options.connectionString ?? '');
    if (name) url.pathname = `/${name}`;
    if (user) url.username = user;
    return url.href;
  };
  const examineAt = (DATABASE_URL: string) => examine({ DATABASE_URL, PORT: '0' });

  it('says that all is well', async () => {
    const findings = await examineAt(urlOf({}));
    expect(problemsOf(findings)).toEqual([]);
    expect(found(findings, 'migrations')?.says).toMatch(/^all \d+ applied$/);
    expect(found(findings, 'change feed')?.says).toMatch(/^a notification arrived within \d+ ms$/);
    expect(found(findings, 'clock')?.says).toMatch(/^0\.\d s from/);
  });

  it('counts the migrations that are pending, applies none, and knows those of a later version', async () => {
    const name = `doctor_${Date.now()}`;
    await database.pool.query(`CREATE DATABASE ${name}`);
    try {
      for (let time = 0; time < 2; time++) {
        const findings = await examineAt(urlOf({ name }));
        expect(problemsOf(findings)).toEqual([]);
        expect(found(findings, 'migrations')?.says).toMatch(/^0 applied, \d+ pending/);
      }
    } finally {
      await database.pool.query(`DROP DATABASE ${name}`);
    }
    await database.pool.query(`INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at)
      VALUES ('later', '', '99991231_later', now())`);
    const [problem] = problemsOf(await examineAt(urlOf({})));
    expect(problem?.says).toBe('the database has migrations of a later version: 99991231_later');
    await database.pool.query(`DELETE FROM "_prisma_migrations" WHERE id = 'later'`);
  });

  it('finds that the role may not create tables, where some are to be made', async () => {
    const user = `reader_${Date.now()}`;
    await database.pool.query(`CREATE ROLE ${user} LOGIN PASSWORD 'postgres'`);
    await database.pool.query(`GRANT SELECT ON "_prisma_migrations" TO ${user}`);
    try {
      const findings = await examineAt(urlOf({ user }));
      expect(problemsOf(findings)).toEqual([]);
      expect(found(findings, 'database rights')?.says).toBe('tables cannot be created, and need not be');

      await database.pool.query('UPDATE "_prisma_migrations" SET rolled_back_at = now()');
      const problems = problemsOf(await examineAt(urlOf({ user })));
      expect(problems.map(({ says }) => says)).toEqual([
        `the role "${user}" may not create tables in the schema "public"`,
      ]);
      await database.pool.query('UPDATE "_prisma_migrations" SET rolled_back_at = NULL');
    } finally {
      await database.pool.query(`DROP OWNED BY ${user}`);
      await database.pool.query(`DROP ROLE ${user}`);
    }
  });

  it.each([
    ['DISABLE TRIGGER USER', ['delete', 'insert', 'truncate', 'update']],
    ['DISABLE TRIGGER announce_update', ['update']],
    // As a trigger is when it is made: some sessions do not fire it.
    ['ENABLE TRIGGER announce_update', ['update']],
  ])('finds triggers that announce nothing after %s, and says how to mend them', async (change, events) => {
    await database.pool.query(`ALTER TABLE "LockTemplate" ${change}`);
    const [problem, ...more] = problemsOf(await examineAt(urlOf({})));
    expect(more).toEqual([]);
    expect(problem).toMatchObject({
      check: 'triggers',
      says: `changes are not announced: ${events.map((event) => `LockTemplate.announce_${event} is disabled`).join(', ')}`,
    });
    // The advice itself mends it.
    await database.pool.query(problem?.advice?.match(/ALTER TABLE[^;]*;/g)?.join('') ?? '');
    expect(problemsOf(await examineAt(urlOf({})))).toEqual([]);
  });

  it('finds that a table has been made anew without its triggers', async () => {
    await database.pool.query(
      'DROP TRIGGER announce_insert ON "OssmDevice"; DROP TRIGGER await_writers ON "DttTemplateImport"',
    );
    const [problem] = problemsOf(await examineAt(urlOf({})));
    expect(problem?.says).toBe(
      'changes are not announced: DttTemplateImport.await_writers is missing, OssmDevice.announce_insert is missing',
    );
  });
});
