import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  onTestFinished,
  vi,
} from 'vitest';
import { draftMigration, openSchemaEngine } from '../../prisma/draft.ts';
import { type MigrationListener, migrate, migrationLock } from '../../src/database/migrate.ts';
import { SetupError, UnusableDatabase } from '../../src/errors.ts';
import { openGateway } from '../../src/server/gateway.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import {
  graphqlOnce,
  needsEngine,
  openTestDatabase,
  postJson,
  type TestDatabase,
} from '../support/gateway.ts';
import { newFolder } from '../support/newFolder.ts';
import { readConfig } from '../support/settings.ts';
import { databaseWith, holdTransaction } from '../support/setUp.ts';

const { database } = await databaseWith();

/** Applies the migrations of a folder, or the checked-in ones, over a new connection. */
const apply = (folder?: URL, listener?: MigrationListener) =>
  migrate(database.pool.options, folder, listener);

const empty = () => database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');

async function names(sql: string, of = database): Promise<string[]> {
  const { rows } = await of.pool.query<{ name: string }>(sql);
  return rows.map(({ name }) => name);
}

const tables = () =>
  names(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1`,
  );
const ledger = () => names('SELECT migration_name AS name FROM _prisma_migrations ORDER BY started_at, 1');

const checkedIn = async () =>
  (await readdir('prisma/migrations', { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();

describe('migrate', () => {
  beforeEach(empty);

  const folder = newFolder();
  afterEach(async () => {
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
  });

  /** Adds these migrations to the folder of the test, and applies those of the folder. */
  async function applyThese(migrations: Record<string, string>): Promise<string[]> {
    for (const [name, sql] of Object.entries(migrations)) {
      await mkdir(join(folder, name), { recursive: true });
      await writeFile(join(folder, name, 'migration.sql'), sql);
    }
    return apply(pathToFileURL(`${folder}/`));
  }

  it('applies migrations in the order of their names, and later those that were added', async () => {
    const first = {
      '2_b': 'ALTER TABLE a ADD COLUMN b int',
      '1_a': 'CREATE TABLE a (a int); CREATE TABLE also ()',
    };
    expect(await applyThese(first)).toEqual(['1_a', '2_b']);
    expect(await applyThese({ '3_c': 'ALTER TABLE a ADD COLUMN c int' })).toEqual(['3_c']);
    expect(await ledger()).toEqual(['1_a', '2_b', '3_c']);
  });

  it('applies each migration once, however many gateways start at the same moment, and one of them says so', async () => {
    const pending: string[] = [];
    const listener: MigrationListener = { pending: (names) => void pending.push(...names) };
    const results = await Promise.all(Array.from({ length: 6 }, () => apply(undefined, listener)));
    const all = await checkedIn();
    expect(results.flat().sort()).toEqual(all);
    expect(pending).toEqual(all);
    expect(await ledger()).toEqual(all);
  });

  it('rolls all migrations of a run back when one of them fails, and names that one', async () => {
    const twice = 'CREATE TABLE a (a int); INSERT INTO a VALUES (7), (7)';
    await expect(applyThese({ '1_a': twice, '2_b': 'CREATE UNIQUE INDEX ON a (a)' })).rejects.toThrow(
      new SetupError(
        'The database could not be migrated: 2_b: could not create unique index "a_a_idx" (Key (a)=(7) is duplicated.)',
      ),
    );
    expect(await tables()).toEqual([]);
    // Once it is corrected, both are applied.
    expect(await applyThese({ '2_b': 'CREATE TABLE b (b int)' })).toEqual(['1_a', '2_b']);
  });

  it.each([
    ['had other content', '1_a', { '1_a': 'CREATE TABLE a (b int)' }],
    ['are of a later version', '2_b', {}],
  ])('rejects a database whose migrations %s, and leaves it unchanged', async (_, name, here) => {
    await applyThese({ '1_a': 'CREATE TABLE a (a int)', '2_b': 'CREATE TABLE b ()' });
    await rm(join(folder, name), { recursive: true });
    await expect(applyThese(here)).rejects.toThrow(
      new SetupError(`The database cannot be used: it has migrations of another version: ${name}`),
    );
    expect(await tables()).toEqual(['_prisma_migrations', 'a', 'b']);
  });

  it('ignores entries of the ledger that were rolled back or never finished', async () => {
    await applyThese({ '1_a': 'CREATE TABLE a (a int)' });
    await database.pool.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, rolled_back_at)
       VALUES ('x', 'x', '2_b', now(), now()), ('y', 'y', '3_c', NULL, NULL)`,
    );
    expect(await applyThese({ '2_b': 'CREATE TABLE b (b int)' })).toEqual(['2_b']);
  });
});

describe('a role that may only read and write rows', () => {
  needsEngine('postgres', 'the embedded engine has one role');

  /** The rights that docs/deployment.md grants. */
  const grants = async (role: string) => {
    const page = await readFile('docs/deployment.md', 'utf8');
    const statements = page.match(/^GRANT .* TO dovetail;$/gm) ?? [];
    expect(statements.length).toBeGreaterThan(3);
    return statements.map((statement) => statement.replace('TO dovetail;', `TO ${role};`)).join('\n');
  };

  let data: TestDatabase;
  let account: Account;
  let role: string;
  let url: string;
  beforeAll(async () => {
    if (inject('engine').kind !== 'postgres') return;
    data = await openTestDatabase();
    account = await createAccount(data.client, 'alice');
    role = `serving_${Date.now()}`;
    await data.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
    await data.pool.query(await grants(role));
    const named = new URL(data.pool.options.connectionString ?? '');
    named.username = role;
    url = named.href;
  });
  afterAll(async () => {
    await data?.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await data?.close();
  });

  it('can run a gateway when all migrations are applied', async () => {
    const limits = { RATE_LIMIT: '20', RATE_LIMIT_ANONYMOUS: '20' };
    const settings = { DATABASE_URL: url, PORT: '0', LOG_LEVEL: 'silent', ...limits };
    const gateway = await openGateway(readConfig(settings));
    const nameOf = async () =>
      (await graphqlOnce(gateway, account.token, '{ viewer { profileTitle } }')).data;
    onTestFinished(() => gateway.close());
    expect(await nameOf()).toEqual({ viewer: { profileTitle: 'Title of alice' } });
    const [, second] = account.dttTemplates;
    const { status } = await postJson(gateway, account.token, `/dtt/templates/${second}`, {
      isActive: true,
    });
    expect(status).toBe(200);
    expect((await graphqlOnce(gateway, 'unknown', '{ viewer { id } }')).status).toBe(401);
    // A change that another role makes is received.
    await data.pool.query(`UPDATE "User" SET "profileTitle" = 'New' WHERE id = ${account.userId}`);
    await expect.poll(nameOf).toEqual({ viewer: { profileTitle: 'New' } });
    const counted = () => names(`SELECT key AS name FROM "RateLimit"`, data);
    // Those of the token, and those of the address.
    await expect.poll(counted).toHaveLength(2);
    const used = () => names(`SELECT id::text AS name FROM "ApiToken" WHERE "lastUsedAt" IS NOT NULL`, data);
    await expect.poll(used).toHaveLength(1);
  });

  it('finds that no migration is pending without a wait for a concurrent migration', async () => {
    const release = await holdTransaction(data.pool, `SELECT pg_advisory_xact_lock(${migrationLock})`);
    expect(await migrate({ connectionString: url })).toEqual([]);
    await release();
  });

  it('waits for a concurrent migration when one is pending, and reports that it waits', async () => {
    const newest = (await checkedIn()).at(-1);
    await data.pool.query(
      `UPDATE "_prisma_migrations" SET rolled_back_at = now() WHERE migration_name = '${newest}'`,
    );
    const release = await holdTransaction(data.pool, `SELECT pg_advisory_xact_lock(${migrationLock})`);
    const connectionString = `${url}?options=-c%20lock_timeout%3D1ms`;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let migrating: Promise<unknown> | undefined;
    await new Promise<void>((waiting) => {
      migrating = migrate({ connectionString }, undefined, { waiting }).catch(String);
    });
    vi.advanceTimersByTime(20 * 60_000);
    await data.pool.query('SELECT pg_sleep(0.05)');
    await release();
    // Its turn has come.
    expect(await migrating).toContain('permission denied for schema public');
    await data.pool.query('UPDATE "_prisma_migrations" SET rolled_back_at = NULL');
  });

  it('gets an error with the missing right when it may not read which migrations were applied', async () => {
    await data.pool.query(`REVOKE SELECT ON "_prisma_migrations" FROM ${role}`);
    onTestFinished(
      async () => void (await data.pool.query(`GRANT SELECT ON "_prisma_migrations" TO ${role}`)),
    );
    await expect(migrate({ connectionString: url })).rejects.toThrow(
      new UnusableDatabase(
        `The role "${role}" may not read the database: permission denied for table _prisma_migrations`,
      ),
    );
  });

  it('gets an error with the missing right and the command to run when a migration is pending', async () => {
    const folder = newFolder();
    await cp('prisma/migrations', folder, { recursive: true });
    await mkdir(join(folder, '2999_later'));
    await writeFile(join(folder, '2999_later/migration.sql'), 'CREATE TABLE later ()');
    await expect(migrate({ connectionString: url }, pathToFileURL(`${folder}/`))).rejects.toThrow(
      new SetupError(
        `The role "${role}" may not migrate the database: permission denied for schema public. Run \`npx dovetail-gateway migrate\` with a DATABASE_URL of the role that owns the tables.`,
      ),
    );
  });
});

describe('prisma migrate', () => {
  /** The migrations as Prisma's schema engine takes them. */
  async function migrationsList() {
    const directories = (await checkedIn()).map(async (path) => ({
      path,
      migrationFile: {
        path: 'migration.sql',
        content: {
          tag: 'ok' as const,
          value: await readFile(`prisma/migrations/${path}/migration.sql`, 'utf8'),
        },
      },
    }));
    const lockfile = 'prisma/migrations/migration_lock.toml';
    return {
      baseDir: resolve('prisma/migrations'),
      lockfile: { path: 'migration_lock.toml', content: await readFile(lockfile, 'utf8') },
      shadowDbInitScript: '',
      migrationDirectories: await Promise.all(directories),
    };
  }

  const filters = { externalTables: [], externalEnums: [] };
  const open = async () =>
    openSchemaEngine(database.pool.options, await readFile('prisma/schema.prisma', 'utf8'));

  it('finds nothing to deploy, and nothing edited or failed, after a start of the gateway', async () => {
    await empty();
    await apply();
    const engine = await open();
    const input = { migrationsList: await migrationsList(), filters };
    expect(await engine.diagnoseMigrationHistory({ ...input, optInToShadowDatabase: false })).toMatchObject({
      editedMigrationNames: [],
      failedMigrationNames: [],
      hasMigrationsTable: true,
      history: null,
    });
    expect(await engine.applyMigrations(input)).toEqual({ appliedMigrationNames: [] });
  });
});

/** All that `schema.prisma` can describe, each column, key, index and enum as a line. */
async function catalog(): Promise<Set<string>> {
  return new Set(
    await names(`
      SELECT format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                    CASE WHEN a.attnotnull THEN 'NOT NULL' END, pg_get_expr(d.adbin, d.adrelid)) AS name
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
       WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
         AND c.relname <> '_prisma_migrations'
      UNION ALL
      SELECT format('%s %s %s', c.relname, conname, pg_get_constraintdef(k.oid))
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
       WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> '_prisma_migrations' AND contype IN ('p', 'u', 'f')
      UNION ALL
      SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '_prisma_migrations'
      UNION ALL
      SELECT format('%s.%s %s', typname, enumlabel, enumsortorder) FROM pg_enum JOIN pg_type t ON t.oid = enumtypid`),
  );
}

describe('the schema that the migrations build', () => {
  /** What Prisma's schema language cannot express: what the migrations have, and what Prisma would draft instead. */
  const additions = {
    onlyMigrated: [
      'CREATE UNIQUE INDEX "User_username_in_any_case" ON public."User" USING btree (lower(username))',
      ...['DttDevice', 'LkbxDevice', 'OssmDevice'].map((table) => byLastVisited(table, 'DESC NULLS LAST')),
      lockTemplateKey('SET NULL ("templateId")'),
      activeTemplateKey('SET NULL ("activeTemplateId")'),
    ],
    onlyDrafted: [
      ...['DttDevice', 'LkbxDevice', 'OssmDevice'].map((table) => byLastVisited(table, 'DESC')),
      lockTemplateKey('SET NULL'),
      activeTemplateKey('SET NULL'),
    ],
  };

  function byLastVisited(table: string, order: string): string {
    return `CREATE INDEX "${table}_ownerId_lastVisited_id_idx" ON public."${table}" USING btree ("ownerId", "lastVisited" ${order}, id DESC)`;
  }
  function lockTemplateKey(action: string): string {
    return `LockSession LockSession_templateId_ownerId_fkey FOREIGN KEY ("templateId", "ownerId") REFERENCES "LockTemplate"(id, "ownerId") ON DELETE ${action}`;
  }
  function activeTemplateKey(action: string): string {
    return `User User_activeTemplateId_id_fkey FOREIGN KEY ("activeTemplateId", id) REFERENCES "DttLibraryEntry"("templateId", "userId") ON UPDATE CASCADE ON DELETE ${action}`;
  }

  it('equals that of schema.prisma, except for checks and the differences that are listed here', async () => {
    await empty();
    await apply();
    const migrated = await catalog();
    await empty();
    const schema = await readFile('prisma/schema.prisma', 'utf8');
    await database.pool.query(await draftMigration(database.pool.options, '', schema));
    const drafted = await catalog();
    expect(migrated.size).toBeGreaterThan(100);
    expect({
      onlyMigrated: [...migrated].filter((line) => !drafted.has(line)).sort(),
      onlyDrafted: [...drafted].filter((line) => !migrated.has(line)).sort(),
    }).toEqual({ onlyMigrated: additions.onlyMigrated.sort(), onlyDrafted: additions.onlyDrafted.sort() });
  });
});
