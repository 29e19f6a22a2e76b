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

  it('finds that the user may not create tables', async () => {
    const user = `reader_${Date.now()}`;
    await database.pool.query(`CREATE ROLE ${user} LOGIN PASSWORD 'postgres'`);
    await database.pool.query(`GRANT SELECT ON "_prisma_migrations" TO ${user}`);
    try {
      const problems = problemsOf(await examineAt(urlOf({ user })));
      expect(problems.map(({ says }) => says)).toEqual(['the user may not create tables']);
    } finally {
      await database.pool.query(`DROP OWNED BY ${user}`);
      await database.pool.query(`DROP ROLE ${user}`);
    }
  });
});
