/** The findings of the doctor about a database server. */

import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { examine } from '../../../src/cli/doctor/checks.ts';
import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { findServer } from '../../../src/database/connection/find.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { SetupError, withoutPassword } from '../../../src/errors.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';

/** The rights that docs/deployment.md grants to the role of a gateway. */
async function grantsTo(role: string): Promise<string> {
  const page = await readFile('docs/deployment.md', 'utf8');
  const statements = page.match(/^GRANT .* TO dovetail;$/gm) ?? [];
  return statements.map((statement) => statement.replace('TO dovetail;', `TO ${role};`)).join('');
}

const problemsOf = (findings: readonly Finding[]) => findings.filter(({ state }) => state === 'problem');
const found = (findings: readonly Finding[], check: string) => findings.find((each) => each.check === check);

describe('dovetail doctor, over a server', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database?.close());

  const urlOf = ({ name = '', user = '', options = '' }) => {
    const url = new URL(database.pool.options.connectionString ?? '');
    if (name) url.pathname = `/${name}`;
    if (user) url.username = user;
    if (options) url.searchParams.set('options', options);
    return url.href;
  };
  const examineAt = (DATABASE_URL: string) => examine({ DATABASE_URL, PORT: '0' });

  /** A role with the rights of docs/deployment.md, if it is to have any, which is dropped after the test. */
  async function createRole({ hasRights = true } = {}): Promise<string> {
    const role = `role_${Date.now()}`;
    await database.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
    if (hasRights) await database.pool.query(await grantsTo(role));
    onTestFinished(async () => void (await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
    return role;
  }

  /** A statement that is run after the test. */
  const finallyRun = (statement: string) =>
    onTestFinished(async () => void (await database.pool.query(statement)));

  it('finds no problem on a sound server, and leaves no connection open', async () => {
    const count = async () => {
      const { rows } = await database.pool.query(
        'SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()',
      );
      return rows[0].count;
    };
    const before = await count();
    const findings = await examineAt(urlOf({}));
    const server =
      /^ok database: PostgreSQL \d+.*, postgresql:\/\/postgres:\*\*\*@127\.0\.0\.1:\d+\/test_\w+$/;
    expect(findings.map(({ check, state, says }) => `${state} ${check}: ${says}`)).toEqual([
      expect.stringMatching(/^ok node: /),
      'ok settings: all of them can be used',
      expect.stringMatching(server),
      'ok database rights: tables can be created',
      expect.stringMatching(/^ok migrations: all \d+ applied$/),
      'ok triggers: every change is announced',
      'ok pooler: none stands between',
      expect.stringMatching(/^ok change feed: a notification arrived within \d+ ms$/),
      'ok announcements: by NOTIFY',
      'ok port: any that is free',
    ]);
    await expect.poll(count).toBe(before);
  });

  describe('that reports faked properties', () => {
    /** These functions, which come before those of the server in the search_path, fake its properties. */
    beforeAll(async () => {
      await database.pool.query(`CREATE SCHEMA fake;
        CREATE FUNCTION fake.current_setting(text) RETURNS text LANGUAGE sql AS
          $$ SELECT coalesce(pg_catalog.current_setting('fake.' || $1, true), pg_catalog.current_setting($1)) $$;
        CREATE FUNCTION fake.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS
          $$ SELECT pg_catalog.current_setting('fake.replica', true) = 'yes' $$;`);
    });
    afterAll(() => database.pool.query('DROP SCHEMA fake CASCADE'));

    it.each([
      [
        'replica=yes',
        'database rights',
        'it is a replica, which can only be read',
        'Name the primary in DATABASE_URL.',
      ],
      [
        'server_version_num=140099',
        'database',
        expect.stringMatching(/^PostgreSQL /),
        'Dovetail needs PostgreSQL 15 or later.',
      ],
      ['server_version_num=150000', 'database', expect.stringMatching(/^PostgreSQL /), undefined],
    ])('judges them: %s', async (faked, check, says, advice) => {
      const options = `-c search_path=public,fake,pg_catalog -c fake.${faked}`;
      const findings = await examineAt(urlOf({ options }));
      const finding =
        advice === undefined ? { check, state: 'ok', says } : { check, state: 'problem', says, advice };
      expect(found(findings, check)).toEqual(finding);
      expect(problemsOf(findings)).toEqual(advice === undefined ? [] : [finding]);
    });
  });

  it.each([
    ['a wrong password', { password: 'wrong' }, 'the server does not accept its password ('],
    ['a missing database', { pathname: '/missing' }, 'the server has no such database ('],
    ['a port that no server listens on', { port: '1' }, 'cannot be reached: '],
  ])('has the same message about %s as a start', async (_, change, beginning) => {
    const url = Object.assign(new URL(urlOf({})), change);
    const shown = withoutPassword(url.href);
    const [problem, ...others] = problemsOf(await examineAt(url.href));
    expect(others).toEqual([]);
    const reason = problem?.says.replace(`${shown}: `, '');
    expect(reason).toContain(beginning);
    const error: unknown = await findServer({ url: url.href }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SetupError);
    expect(error).toHaveProperty('message', `DATABASE_URL is "${shown}", but ${reason}. ${problem?.advice}`);
  });

  it('has the same message about a search_path without a schema that the role may use as a start', async () => {
    const user = await createRole();
    await database.pool.query(`REVOKE USAGE ON SCHEMA public FROM PUBLIC, ${user}`);
    finallyRun('GRANT USAGE ON SCHEMA public TO PUBLIC');
    for (const path of ['nowhere', '"$user", public']) {
      const url = urlOf({ user, options: `-c search_path=${path.replaceAll(' ', '\\ ')}` });
      const findings = await examineAt(url);
      const problem = {
        check: 'database rights',
        state: 'problem',
        says: `its search_path is ${path}, and it has no schema that the role "${user}" may use`,
        advice: `Make one with CREATE SCHEMA, or as its owner run GRANT USAGE, CREATE ON SCHEMA … TO ${user}; or correct the search_path, in DATABASE_URL or of the role.`,
      };
      expect(problemsOf(findings)).toEqual([problem]);
      expect(found(findings, 'triggers')).toBeUndefined();
      await expect(migrate({ connectionString: url })).rejects.toThrow(
        new SetupError(`DATABASE_URL cannot be used: ${problem.says}. ${problem.advice}`),
      );
    }
  });

  it('finds tables whose rows are hidden by row-level security, and its advice fixes that', async () => {
    const user = await createRole();
    await database.pool.query('ALTER TABLE "ApiToken" ENABLE ROW LEVEL SECURITY');
    finallyRun(
      'DROP POLICY IF EXISTS dovetail ON "ApiToken"; ALTER TABLE "ApiToken" DISABLE ROW LEVEL SECURITY',
    );
    expect(problemsOf(await examineAt(urlOf({})))).toEqual([]);
    const [problem, ...others] = problemsOf(await examineAt(urlOf({ user })));
    expect(others).toEqual([]);
    expect(problem).toMatchObject({
      check: 'row security',
      says: `row-level security hides the rows of "ApiToken" from the role "${user}"`,
    });
    const [bypass, policy] = problem?.advice?.match(/(ALTER ROLE|CREATE POLICY)[^;]*;/g) ?? [];
    await database.pool.query(bypass ?? '');
    expect(problemsOf(await examineAt(urlOf({ user })))).toEqual([]);
    await database.pool.query(`ALTER ROLE ${user} NOBYPASSRLS; ${policy}`);
    expect(problemsOf(await examineAt(urlOf({ user })))).toEqual([]);
  });

  it.each(['LATIN1', 'SQL_ASCII'])(
    'has the same message about a database with the encoding %s as a start',
    async (encoding) => {
      const name = `encoded_${encoding.toLowerCase()}_${Date.now()}`;
      await database.pool.query(
        `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`,
      );
      try {
        const url = urlOf({ name });
        const [problem, ...others] = problemsOf(await examineAt(url));
        expect(others).toEqual([]);
        expect(problem).toMatchObject({
          check: 'database encoding',
          says: `the encoding of the database "${name}" is ${encoding}, and has to be UTF8`,
          advice: expect.stringMatching(
            /: createdb .* -E UTF8 -T template0 dovetail\. Name it in DATABASE_URL\.$/,
          ),
        });
        await expect(findServer({ url })).rejects.toThrow(
          new SetupError(`DATABASE_URL cannot be used: ${problem?.says}. ${problem?.advice}`),
        );
      } finally {
        await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
      }
    },
  );

  it('has the same message about a role that may not create the first tables as a start, and advice that fixes it', async () => {
    const name = `locked_${Date.now()}`;
    await database.pool.query(`CREATE DATABASE ${name}`);
    await database.pool.query(`CREATE ROLE "${name} Me" LOGIN PASSWORD 'postgres'`);
    try {
      const url = urlOf({ name, user: `${name} Me` });
      const [problem, ...others] = problemsOf(await examineAt(url));
      expect(others).toEqual([]);
      expect(problem).toEqual({
        check: 'database rights',
        state: 'problem',
        says: `the role "${name} Me" may not create tables in the schema "public"`,
        advice: `Run \`npx dovetail migrate\` with a DATABASE_URL of the role that owns the database, or grant this one the right: GRANT CREATE ON SCHEMA public TO "${name} Me";`,
      });
      await expect(migrate({ connectionString: url })).rejects.toThrow(
        new SetupError(`DATABASE_URL cannot be used: ${problem?.says}. ${problem?.advice}`),
      );
      const owner = new pg.Client({ connectionString: urlOf({ name }) });
      await owner.connect();
      await owner.query(problem?.advice?.split(': ')[1] ?? '');
      await owner.end();
      expect(await migrate({ connectionString: url })).not.toEqual([]);
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await database.pool.query(`DROP ROLE "${name} Me"`);
    }
  });

  it('asks the role of DATABASE_DIRECT_URL whether it may migrate', async () => {
    const user = await createRole();
    await database.pool.query('UPDATE "_prisma_migrations" SET rolled_back_at = now()');
    finallyRun('UPDATE "_prisma_migrations" SET rolled_back_at = NULL');
    const settings = { DATABASE_URL: urlOf({ user }), PORT: '0' };
    expect(found(await examine(settings), 'database rights')).toMatchObject({ state: 'problem' });
    const both = await examine({ ...settings, DATABASE_DIRECT_URL: urlOf({}) });
    expect(found(both, 'database rights')).toMatchObject({ state: 'ok', says: 'tables can be created' });
  });

  it('counts pending migrations without applying them, and finds those of a later version', async () => {
    const name = `doctor_${Date.now()}`;
    await database.pool.query(`CREATE DATABASE ${name}`);
    try {
      for (let time = 0; time < 2; time++) {
        const findings = await examineAt(urlOf({ name }));
        expect(problemsOf(findings)).toEqual([]);
        expect(found(findings, 'migrations')?.says).toMatch(
          /^0 applied, \d+ pending: the next start applies them$/,
        );
      }
    } finally {
      await database.pool.query(`DROP DATABASE ${name}`);
    }
    await database.pool.query(`INSERT INTO "_prisma_migrations" (id, checksum, migration_name, finished_at)
      VALUES ('later', '', '99991231_later', now())`);
    const [problem] = problemsOf(await examineAt(urlOf({})));
    expect(problem).toEqual({
      check: 'migrations',
      state: 'problem',
      says: 'it has migrations of a later version: 99991231_later',
      advice: 'Install the version that has them, or name another database.',
    });
    await database.pool.query(`DELETE FROM "_prisma_migrations" WHERE id = 'later'`);
  });

  it('finds that the role may not create tables if migrations are pending, and only then', async () => {
    const user = await createRole();
    const findings = await examineAt(urlOf({ user }));
    expect(problemsOf(findings)).toEqual([]);
    expect(found(findings, 'database rights')?.says).toBe('tables cannot be created, and need not be');

    await database.pool.query('UPDATE "_prisma_migrations" SET rolled_back_at = now()');
    finallyRun('UPDATE "_prisma_migrations" SET rolled_back_at = NULL');
    expect(problemsOf(await examineAt(urlOf({ user }))).map(({ says }) => says)).toEqual([
      `the role "${user}" may not create tables in the schema "public"`,
    ]);
  });

  it.each([
    [
      'SELECT ON "LockSegment", "_prisma_migrations"',
      'SELECT on "LockSegment", "_prisma_migrations"',
      'GRANT SELECT ON "LockSegment", "_prisma_migrations"',
    ],
    ['DELETE ON "RateLimit"', 'DELETE on "RateLimit"', 'GRANT DELETE ON "RateLimit"'],
    ['UPDATE (id) ON "DttTemplate"', 'UPDATE (id) on "DttTemplate"', 'GRANT UPDATE (id) ON "DttTemplate"'],
  ])(
    'finds that the role lacks %s, which requests need, and its advice fixes that',
    async (right, says, grant) => {
      const user = await createRole();
      await database.pool.query(`REVOKE ${right} FROM ${user}`);
      const advice = `As the owner of the tables: ${grant} TO "${user}";`;
      expect(problemsOf(await examineAt(urlOf({ user })))).toEqual([
        {
          check: 'database rights',
          state: 'problem',
          says: `the role "${user}" lacks rights without which requests fail: ${says}`,
          advice,
        },
      ]);
      await database.pool.query(advice.split(': ')[1] ?? '');
      expect(problemsOf(await examineAt(urlOf({ user })))).toEqual([]);
    },
  );

  it.each([
    ['DISABLE TRIGGER USER', ['delete', 'insert', 'truncate', 'update'], 'is disabled'],
    ['DISABLE TRIGGER announce_update', ['update'], 'is disabled'],
    // As triggers are when they are created, and after `pg_restore --disable-triggers`.
    ['ENABLE TRIGGER announce_update', ['update'], 'fires in some sessions only'],
  ])(
    'finds triggers that announce no changes after %s, and its advice fixes them',
    async (change, events, state) => {
      await database.pool.query(`ALTER TABLE "LockTemplate" ${change}`);
      const [problem, ...more] = problemsOf(await examineAt(urlOf({})));
      expect(more).toEqual([]);
      expect(problem).toMatchObject({
        check: 'triggers',
        says: `changes are not announced: ${events.map((event) => `LockTemplate.announce_${event} ${state}`).join(', ')}`,
      });
      // The advice fixes it.
      await database.pool.query(problem?.advice?.match(/ALTER TABLE[^;]*;/g)?.join('') ?? '');
      expect(problemsOf(await examineAt(urlOf({})))).toEqual([]);
    },
  );

  it('finds disabled triggers that enforce rules, and its advice fixes them', async () => {
    await database.pool.query(
      'ALTER TABLE "ApiToken" DISABLE TRIGGER only_for_ultra; ALTER TABLE "DttLibraryEntry" DISABLE TRIGGER keep_own; ALTER TABLE "DttTemplate" DISABLE TRIGGER library_insert, DISABLE TRIGGER library_update',
    );
    const [problem] = problemsOf(await examineAt(urlOf({})));
    expect(problem?.says).toBe(
      'rules are not kept: ApiToken.only_for_ultra is disabled, DttLibraryEntry.keep_own is disabled, ' +
        'DttTemplate.library_insert is disabled, DttTemplate.library_update is disabled',
    );
    await database.pool.query(problem?.advice?.match(/ALTER TABLE[^;]*;/g)?.join('') ?? '');
    expect(problemsOf(await examineAt(urlOf({})))).toEqual([]);
  });

  it('finds triggers that are missing, as on a table that was created anew', async () => {
    await database.pool.query(
      'DROP TRIGGER announce_insert ON "OssmDevice"; DROP TRIGGER await_writers ON "DttLibraryEntry"; DROP TRIGGER keep_own ON "DttLibraryEntry"',
    );
    const [problem] = problemsOf(await examineAt(urlOf({})));
    expect(problem?.says).toBe(
      'changes are not announced: DttLibraryEntry.await_writers is missing, OssmDevice.announce_insert is missing; ' +
        'rules are not kept: DttLibraryEntry.keep_own is missing',
    );
    expect(problem?.advice).toBe(
      'As the owner of the tables: create await_writers on "DttLibraryEntry" as the newest migration that names it does; ' +
        'create keep_own on "DttLibraryEntry" as the newest migration that names it does; ' +
        'create announce_insert on "OssmDevice" as the newest migration that names it does; ' +
        'then start the gateways again, which forget what they cached.',
    );
  });
});
