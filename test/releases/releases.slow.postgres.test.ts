/** Databases of earlier releases, and of later ones (docs/stability.md#databases). `add.ts` keeps one of each release. */

import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { engineFolder } from '../../src/database/embedded/folder.ts';
import { unpack } from '../../src/database/embedded/newDatabase.ts';
import { migrate } from '../../src/database/migrate.ts';
import { createAccount } from '../support/accounts.ts';
import {
  newServerDatabase,
  openAt,
  openTestGateway,
  postJson,
  rest,
  type TestGateway,
  withClient,
} from '../support/gateway.ts';
import { newFolder } from '../support/newFolder.ts';
import { queryOnce } from '../support/postgres.ts';
import { endProcesses, runCli, serve, startScript, written } from '../support/processes.ts';
import { listOf, recordOf } from '../support/restResponses.ts';
import { runHere } from '../support/runHere.ts';
import { keptToken } from './kept.ts';

const files = await readdir(import.meta.dirname);
const releases = files.filter((name) => name.endsWith('.br')).map((name) => name.slice(0, -3));

/** A folder with the database of a release. */
async function folderOf(version: string): Promise<string> {
  const DATA_DIR = newFolder();
  const packed = brotliDecompressSync(await readFile(join(import.meta.dirname, `${version}.br`)));
  await writeFile(join(DATA_DIR, 'packed.gz'), gzipSync(packed, { level: 1 }));
  await mkdir(join(DATA_DIR, engineFolder), { mode: 0o700 });
  await unpack(join(DATA_DIR, 'packed.gz'), join(DATA_DIR, engineFolder));
  return DATA_DIR;
}

/** The migrations of this version, and more that change nothing which it uses. */
async function withLater(...names: string[]): Promise<string> {
  const folder = newFolder();
  await cp('prisma/migrations', folder, { recursive: true });
  for (const name of names) {
    await mkdir(join(folder, name));
    const sql = `ALTER TABLE "User" ADD COLUMN "${name}" text NOT NULL DEFAULT ''; CREATE TABLE "${name}" ()`;
    await writeFile(join(folder, name, 'migration.sql'), sql);
  }
  return folder;
}

const urlOf = (folder: string) => pathToFileURL(`${folder}/`);

/** Reads, and writes, with a token that the release has made. */
async function useGateway(gateway: TestGateway): Promise<void> {
  try {
    const { rows } = await gateway.database.pool.query(`SELECT count(*)::int FROM "DttSession"`);
    expect(rows[0].count).toBeGreaterThan(10);
    listOf(await rest(gateway, keptToken, '/dtt/sessions?limit=50'));
    const templates = listOf(await rest(gateway, keptToken, '/dtt/templates')).data;
    const inactive = templates.find(({ isActive }) => !isActive);
    recordOf(await postJson(gateway, keptToken, `/dtt/templates/${inactive?.id}`, { isActive: true }));
  } finally {
    await gateway.close();
  }
}

it('keeps a database of this release, once it is released', async () => {
  const changes = await readFile('CHANGELOG.md', 'utf8');
  const released = [...changes.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version]) => version);
  expect(releases).toEqual(expect.arrayContaining(released));
  expect(releases).toContain('1.0.0');
});

describe.each(releases)('a database of %s', (version) => {
  it('is opened by this version, embedded and on a server', async () => {
    const DATA_DIR = await folderOf(version);
    const { stdout: text } = await runHere(['dump'], { DATA_DIR });
    await useGateway(
      await openTestGateway(withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR }))),
    );

    // On a server it has the migrations of its release, before this version adds its own.
    const dump = join(newFolder(), 'data.sql');
    await writeFile(dump, text);
    const DATABASE_URL = await newServerDatabase();
    expect(await runHere(['load', dump], { DATABASE_URL })).toMatchObject({ code: 0 });
    await useGateway(await openTestGateway(await openAt(DATABASE_URL)));
  });

  it('is opened by the next two versions, also without the one in between, and then no more by this one', async () => {
    const [next, second] = [await withLater('2998_next'), await withLater('2998_next', '2999_second')];
    const all = (await readdir('prisma/migrations')).filter((name) => /^\d/.test(name));
    for (const steps of [[next, second], [second]]) {
      const DATA_DIR = await folderOf(version);
      const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR });
      for (const step of steps) await migrate(database.pool.options, urlOf(step));
      const { rows } = await database.pool.query(
        'SELECT migration_name AS name FROM _prisma_migrations ORDER BY 1',
      );
      expect(rows.map(({ name }) => name)).toEqual([...all, '2998_next', '2999_second']);
      await database.close();
      expect(await runHere(['migrate'], { DATA_DIR })).toEqual({
        code: 1,
        stdout: '',
        stderr:
          'The database cannot be used: it has migrations of another version: 2998_next, 2999_second. Run `npx dovetail-gateway doctor`, which says what to do.\n',
      });
      const entries = await readdir(DATA_DIR, { withFileTypes: true });
      expect(entries.filter((entry) => entry.isSocket())).toEqual([]);
    }
  });
});

// It starts three processes, which takes long on a machine with much else to do.
describe('a rolling upgrade', () => {
  afterEach(endProcesses);

  /** Starts a gateway of the next version: this one, with one more migration. */
  async function serveNext(DATABASE_URL: string) {
    const folder = newFolder();
    for (const name of ['bin', 'dist', 'src', 'package.json', 'schema.graphql', 'openapi.json'])
      await cp(name, join(folder, name), { recursive: true });
    await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
    await cp(await withLater('2998_next'), join(folder, 'prisma/migrations'), { recursive: true });
    const program = pathToFileURL(join(folder, 'bin/dovetail.js'));
    const started = startScript(`
      Object.assign(process.env, ${JSON.stringify({ DATABASE_URL, PORT: '0' })});
      process.argv.push('serve');
      await import('${program}');`);
    const text = await written(started, /http:\/\/[^/\s]+/);
    return { ...started, url: /http:\/\/[^/\s]+/.exec(text)?.[0] ?? '' };
  }

  it('has gateways of two versions, which both read, write and hear of each other; the older one no longer starts', {
    timeout: 240_000,
  }, async () => {
    const DATABASE_URL = await newServerDatabase();
    const database = await openAt(DATABASE_URL);
    const account = await createAccount(database.client, 'alice');
    await database.close();
    const older = await serve({ DATABASE_URL });
    const newer = await serveNext(DATABASE_URL);
    const activeAt = async (gateway: { readonly url: string }) =>
      listOf(await rest(gateway, account.token, '/dtt/templates')).data.find(({ isActive }) => isActive)?.id;
    const [first, second] = account.dttTemplates;
    for (const [writer, reader, id] of [
      [older, newer, first],
      [newer, older, second],
      [older, newer, first],
    ] as const) {
      await activeAt(reader);
      recordOf(await postJson(writer, account.token, `/dtt/templates/${id}`, { isActive: true }));
      await expect.poll(() => activeAt(reader)).toBe(id);
    }
    expect(await queryOnce(DATABASE_URL, `SELECT "2998_next" AS added FROM "User"`)).toEqual([{ added: '' }]);
    expect(await runCli(['serve'], { DATABASE_URL, PORT: '0' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('it has migrations of another version: 2998_next'),
    });
    expect(older.child.exitCode).toBeNull();
  });
});
