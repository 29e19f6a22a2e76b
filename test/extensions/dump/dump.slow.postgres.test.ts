/** `dovetail dump` and `dovetail load`, between an embedded database and a server. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, cp, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '../../../src/database/database.ts';
import { migrate } from '../../../src/database/migrate.ts';
import { runDump } from '../../../src/extensions/dump/dump.ts';
import { runLoad } from '../../../src/extensions/dump/load.ts';
import { type Account, createAccount } from '../../support/accounts.ts';
import { copyFolder } from '../../support/copyFolder.ts';
import { newServerDatabase, openAt, openTestGateway, rest, withClient } from '../../support/gateway.ts';
import { newFolder } from '../../support/newFolder.ts';
import { queryOnce } from '../../support/postgres.ts';
import { runHere } from '../../support/runHere.ts';
import { readConfig } from '../../support/settings.ts';

/** Opens a gateway until the end of the test. */
async function openGateway(DATABASE_URL: string) {
  const gateway = await openTestGateway(await openAt(DATABASE_URL));
  onTestFinished(() => gateway.close());
  return gateway;
}

const tablesOf = async (url: string) =>
  (
    await queryOnce<{ name: string }>(
      url,
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace`,
    )
  ).map(({ name }) => name);

/** All rules of a database, which a load switches off meanwhile. */
const rules = `
  SELECT format('%s %s %s', tgrelid::regclass, tgname, tgenabled) AS rule FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace ORDER BY 1`;

const DATA_DIR = newFolder();
const file = join(newFolder(), 'data.sql');
let account: Account;

/** An embedded database with what could get lost on the way. */
beforeAll(async () => {
  const database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR }));
  account = await createAccount(database.client, 'alice');
  const other = await createAccount(database.client, 'bob');
  const { pool, client } = database;
  await pool.query(`UPDATE "User" SET "profileTitle" = $1, "activeTemplateId" = $2 WHERE id = $3`, [
    `\t\\N \\. \r\n"it's 'so'"\u2028\\`,
    account.dttTemplates[0],
    account.userId,
  ]);
  // He keeps a token that he could not create now, and has a template of hers.
  await pool.query(`UPDATE "User" SET "subscriptionTier" = 'free' WHERE id = $1`, [other.userId]);
  await pool.query(`INSERT INTO "DttLibraryEntry" ("userId", "templateId") VALUES ($1, $2)`, [
    other.userId,
    account.dttTemplates[1],
  ]);
  await pool.query(
    `UPDATE "DttSession" SET "createdAt" = CASE id % 3 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE '4713-01-01 BC'::timestamptz END`,
  );
  await pool.query(`UPDATE "TrainerSegment" SET "percentGrade" = 100.0 / 3`);
  // More than are read and written at once.
  await pool.query(
    `INSERT INTO "LockSegment" ("sessionId", type, "isLocked")
    SELECT $1, 'lock', true FROM generate_series(1, 1200)`,
    [account.lockSessions[0]],
  );
  // The last one is gone, and its id is not given again.
  await client.user.delete({ where: { id: (await createAccount(client, 'carol')).userId } });
  // A counter that has given no id yet.
  await pool.query('ALTER SEQUENCE "OssmDevice_id_seq" RESTART 4711');
  await database.close();
  expect(await runHere(['dump', file], { DATA_DIR })).toMatchObject({ code: 0, stdout: '' });
});

describe('a dump', () => {
  it('loads from an embedded database into a server and back, with the same rows, counters and rules', async () => {
    const text = await readFile(file, 'utf8');
    expect(text).toContain(`SELECT setval('"OssmDevice_id_seq"', 4711, false);\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const DATABASE_URL = await newServerDatabase();
    const rows = /Dumped (\d+) rows/.exec((await runHere(['dump', file], { DATA_DIR })).stderr)?.[1];
    expect(Number(rows)).toBeGreaterThan(1_200);
    expect(await runHere(['load', file], { DATABASE_URL })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Loaded ${rows} rows into the database postgresql://`),
    });
    expect((await runHere(['dump'], { DATABASE_URL })).stdout).toBe(text);
    const back = newFolder();
    // As a terminal writes it.
    await writeFile(`${file}.crlf`, text.replaceAll('\n', '\r\n'));
    expect(await runHere(['load', `${file}.crlf`], { DATA_DIR: back })).toMatchObject({ code: 0 });
    expect((await runHere(['dump'], { DATA_DIR: back })).stdout).toBe(text);

    const migrated = await newServerDatabase();
    await migrate({ connectionString: migrated });
    expect(await queryOnce(DATABASE_URL, rules)).toEqual(await queryOnce(migrated, rules));
    const gateway = await openGateway(DATABASE_URL);
    expect((await rest(gateway, account.token, '/users/me')).status).toBe(200);
    const { rows: added } = await gateway.database.pool.query(
      `INSERT INTO "User" (username) VALUES ('dora') RETURNING id`,
    );
    expect(added).toEqual([{ id: account.userId + 3 }]);
  });

  it('tells a gateway that has the empty database open', async () => {
    const DATABASE_URL = await newServerDatabase();
    const gateway = await openGateway(DATABASE_URL);
    const heard = vi.fn();
    gateway.feed.subscribe(heard);
    expect((await rest(gateway, account.token, '/users/me')).status).toBe(401);
    await runHere(['load', file], { DATABASE_URL });
    expect((await rest(gateway, account.token, '/users/me')).status).toBe(200);
    await expect.poll(() => heard.mock.calls).toContainEqual([{ kind: 'all' }]);
  });

  it('is written beside a process that has the embedded database open, which waits for no reader', async () => {
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR });
    const write = vi.spyOn(process.stdout, 'write');
    try {
      const meanwhile: unknown[] = [];
      const dumped = runHere(['dump'], { DATA_DIR });
      // The reader takes nothing for a while.
      process.stdout.write = ((text: string) => {
        if (text.startsWith('INSERT INTO "User"'))
          void database.pool.query(`UPDATE "User" SET rank = 7 RETURNING 1`).then(({ rowCount }) => {
            meanwhile.push(rowCount);
            process.stdout.emit('drain');
          });
        return !text.startsWith('INSERT INTO "User"');
      }) as typeof process.stdout.write;
      expect(await dumped).toMatchObject({ code: 0 });
      expect(meanwhile).toEqual([2]);
      const { rows } = await database.pool.query('SELECT FROM pg_cursors WHERE is_holdable');
      expect(rows).toEqual([]);
    } finally {
      write.mockRestore();
      await database.pool.query('UPDATE "User" SET rank = 0');
      await database.close();
    }
  });

  it('has all rows while others are written beside it', async () => {
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR });
    onTestFinished(() => database.close());
    const files = [1, 2, 3].map((each) => join(newFolder(), `${each}.sql`));
    await Promise.all(files.map((each) => runDump(readConfig({ DATA_DIR }), each)));
    const whole = (await runHere(['dump'], { DATA_DIR })).stdout;
    for (const each of files) expect(await readFile(each, 'utf8')).toBe(whole);
    expect((await database.pool.query('SELECT FROM pg_cursors WHERE is_holdable')).rows).toEqual([]);
  });

  it('replaces a file only when it is complete', async () => {
    const folder = newFolder();
    const kept = join(folder, 'kept.sql');
    await writeFile(kept, 'kept');
    const DATABASE_URL = await newServerDatabase();
    expect(await runHere(['dump', kept], { DATABASE_URL })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Nothing of Dovetail's is in the database postgresql:.*\.\n$/),
    });
    expect(await runHere(['dump', join(folder, 'no/such.sql')], { DATA_DIR })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Could not dump the embedded database in .*: ENOENT/),
    });
    expect(await runHere(['dump', kept], { DATA_DIR: newFolder() })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^There is no database to dump: the embedded database in .*\.\n$/),
    });
    expect(await readFile(kept, 'utf8')).toBe('kept');
    expect(await readdir(folder)).toEqual(['kept.sql']);
  });

  it('says which right the role lacks, as load does, and which table hides rows from it', async () => {
    const url = await newServerDatabase();
    await runHere(['load', file], { DATABASE_URL: url });
    const role = `reader_${process.pid}`;
    await queryOnce(
      url,
      `CREATE ROLE ${role} LOGIN PASSWORD 'reader'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`,
    );
    onTestFinished(async () => void (await queryOnce(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`)));
    const DATABASE_URL = Object.assign(new URL(url), { username: role, password: 'reader' }).href;
    const { stderr } = await runHere(['dump'], { DATABASE_URL });
    expect(stderr).toMatch(/^Could not dump the database .*: permission denied for sequence \S+\n$/);
    expect((await runHere(['load', file], { DATABASE_URL })).stderr).toMatch(/: permission denied for .*\n$/);
    // Where there is a direct connection, both take that.
    expect(await runHere(['dump'], { DATABASE_URL, DATABASE_DIRECT_URL: url })).toMatchObject({ code: 0 });
    await queryOnce(url, `GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
    expect(await runHere(['dump'], { DATABASE_URL })).toMatchObject({ code: 0 });
    await queryOnce(url, 'ALTER TABLE "User" ENABLE ROW LEVEL SECURITY');
    expect((await runHere(['dump'], { DATABASE_URL })).stderr).toMatch(/row-level security .* "User"\n$/);
  });

  it('brings tables of others, which load leaves out, and no migration that failed', async () => {
    const [one, DATABASE_URL] = [await newServerDatabase(), await newServerDatabase()];
    await runHere(['load', file], { DATABASE_URL: one });
    await queryOnce(one, 'CREATE TABLE notes (note text); INSERT INTO notes VALUES (NULL)');
    const failed = `INSERT INTO "_prisma_migrations" (id, checksum, migration_name) VALUES (0, '', '2999')`;
    await queryOnce(one, failed);
    const { stdout } = await runHere(['dump'], { DATABASE_URL: one });
    const other = join(newFolder(), 'other.sql');
    await writeFile(other, stdout);
    expect(await runHere(['load', other], { DATABASE_URL })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Left out: the table "notes", which is not Dovetail's.\n`),
    });
    expect((await runHere(['dump'], { DATABASE_URL })).stdout).toBe(await readFile(file, 'utf8'));
  });
});

it('moves the data from the embedded database to a server by the lines of docs/deployment.md', async () => {
  const page = await readFile('docs/deployment.md', 'utf8');
  const lines = /```sh\n(npx dovetail-gateway dump data\.sql[^`]*)```/.exec(page)?.[1] ?? '';
  const folder = newFolder();
  await copyFolder(DATA_DIR, join(folder, '.data'));
  const script = lines
    // As where the file comes through a pipe.
    .replace('load data.sql', 'load - < data.sql')
    .replace('postgresql://user:password@localhost:5432/dovetail', await newServerDatabase())
    .replace('npx dovetail-gateway serve', 'npx dovetail-gateway token list --user alice');
  const { DATABASE_URL, DATA_DIR: _, ...others } = process.env;
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['-ec', `npx() { node "$root/bin/dovetail.js" "\${@:2}"; }\n${script}`],
    { cwd: folder, env: { ...others, root: process.cwd() } },
  );
  expect(stderr).toMatch(
    /^Dumped \d+ rows of the embedded database in .*\.\nLoaded \d+ rows into the database .*\.\n$/,
  );
  expect(stdout).toMatch(/active +activate /);
});

describe('load', () => {
  it('sets no counter of another schema, and dump has none', async () => {
    const DATABASE_URL = await newServerDatabase();
    await queryOnce(DATABASE_URL, 'CREATE SCHEMA other');
    await queryOnce(DATABASE_URL, 'CREATE SEQUENCE other.counter');
    const changed = join(newFolder(), 'changed.sql');
    const text = await readFile(file, 'utf8');
    await writeFile(
      changed,
      text.replace(/^SELECT setval/m, "SELECT setval('other.counter', 99, true);\n$&"),
    );
    expect(await runHere(['load', changed], { DATABASE_URL })).toMatchObject({ code: 0 });
    expect(await queryOnce(DATABASE_URL, 'SELECT is_called FROM other.counter')).toEqual([
      { is_called: false },
    ]);
    expect((await runHere(['dump'], { DATABASE_URL })).stdout).toBe(text);
  });

  const cut = (text: string, pattern: RegExp) => text.slice(0, text.search(pattern));
  const incomplete = /is not a complete dump, and nothing of it was loaded\./;
  it.each<[string, (text: string) => string, RegExp]>([
    ['a file that ends in a row', (text) => cut(text, /"alice"/), incomplete],
    ['a file that ends after a table', (text) => cut(text, /INSERT INTO "User"/), incomplete],
    ['a file that lacks its last line', (text) => cut(text, /-- End/), incomplete],
    ['a file with a broken line', (text) => text.replace(/^INSERT INTO "User"/m, '$& '), incomplete],
    ['another file', () => 'SELECT 1;\n', incomplete],
    ['an empty file', () => '', incomplete],
    [
      'a file with a wrong value',
      (text) => text.replace('"id":1,', '"id":"x",'),
      /^Nothing of .* was loaded: invalid input syntax for type integer: "x"/,
    ],
    [
      'a file without a row that others refer to',
      (text) => text.replace(/^INSERT INTO "User" [^\n]*\n/m, ''),
      /violates foreign key constraint/,
    ],
    [
      'a dump of a later version',
      (text) => text.replace(/^(-- Migrations: .*)/m, '$1 2999_later=0'),
      /it has migrations of another version: 2999_later/,
    ],
  ])('rejects %s, and leaves nothing', async (_, change, says) => {
    const broken = join(newFolder(), 'broken.sql');
    await writeFile(broken, change(await readFile(file, 'utf8')));
    const DATABASE_URL = await newServerDatabase();
    const { code, stderr } = await runHere(['load', broken], { DATABASE_URL });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(says) });
    expect(stderr.trim()).not.toContain('\n');
    expect(await tablesOf(DATABASE_URL)).toEqual([]);
    // It can be used for a dump that is whole.
    expect(await runHere(['load', file], { DATABASE_URL })).toMatchObject({ code: 0 });
  });

  it('rejects a file that is missing, before it makes a folder', async () => {
    const folder = join(newFolder(), 'none');
    expect(await runHere(['load', '/no/such.sql'], { DATA_DIR: folder })).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^\/no\/such\.sql cannot be read: ENOENT.*\n$/),
    });
    expect(existsSync(folder)).toBe(false);
  });

  it('rejects a database with data, one with tables of others, and one that is open', async () => {
    const full = await newServerDatabase();
    await runHere(['load', file], { DATABASE_URL: full });
    for (const settings of [{ DATABASE_URL: full }, { DATA_DIR }])
      expect(await runHere(['load', file], settings)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /^Nothing of .* was loaded: the .* has data\. A dump is loaded into an empty database alone\.\n$/,
        ),
      });
    await queryOnce(full, `TRUNCATE "User" CASCADE; INSERT INTO "User" (username) VALUES ('one')`);
    expect((await runHere(['load', file], { DATABASE_URL: full })).stderr).toContain('has data');
    const foreign = await newServerDatabase();
    await queryOnce(foreign, 'CREATE TABLE notes ()');
    expect((await runHere(['load', file], { DATABASE_URL: foreign })).stderr).toMatch(
      /has tables of something else, such as "notes"/,
    );
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR });
    expect((await runHere(['load', file], { DATA_DIR })).stderr).toMatch(/is in use by another process/);
    await database.close();
  });

  it('migrates what an earlier version dumped, with its rows; not a dump into tables of a later version', async () => {
    const folder = newFolder();
    await cp('prisma/migrations', folder, { recursive: true });
    const later = join(folder, '2999_later');
    await mkdir(later);
    await appendFile(
      join(later, 'migration.sql'),
      `ALTER TABLE "User" ADD COLUMN shout text; UPDATE "User" SET shout = upper(username)`,
    );
    const [DATABASE_URL, migrated] = [await newServerDatabase(), await newServerDatabase()];
    const migrations = pathToFileURL(`${folder}/`);
    await runLoad(readConfig({ DATABASE_URL }), file, migrations);
    expect(await queryOnce(DATABASE_URL, 'SELECT shout FROM "User" ORDER BY id')).toEqual([
      { shout: 'ALICE' },
      { shout: 'BOB' },
    ]);
    await migrate({ connectionString: migrated }, migrations);
    await expect(runLoad(readConfig({ DATABASE_URL: migrated }), file, migrations)).rejects.toThrow(
      /it has migrations of another version: 2999_later/,
    );
  });
});
