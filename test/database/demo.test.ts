import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { createToken, findToken, listTokens, revokeToken } from '../../src/auth/token.ts';
import { openDatabase } from '../../src/database/database.ts';
import { prepareDemo } from '../../src/database/demo.ts';
import { routes } from '../../src/rest/routes.ts';
import { openTestGateway, rest, type TestDatabase, withClient } from '../gateway.ts';

let folder: string;
let file: string;
let database: TestDatabase;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-demo-'));
  file = join(folder, 'demo-token');
  const engine = inject('engine');
  if (engine.kind === 'embedded') await cp(engine.template, folder, { recursive: true });
  database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
});
afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

const prepare = () => prepareDemo(database, folder);
const viewerOf = async (token: string | undefined) => {
  const found = await findToken(database.sql, token ?? '');
  return found && { id: found.userId };
};

describe('the demo account', () => {
  it('has an answer with data for every REST route', async () => {
    const token = await prepare();
    const gateway = await openTestGateway({ ...database, close: async () => {} });
    try {
      const reads = routes.filter(({ isMutation }) => !isMutation);
      const ids = new Map<string, number>();
      // Lists first: what they hold has the ids for the rest.
      for (const { path } of reads.filter(({ isList }) => isList)) {
        const { status, body } = await rest(gateway, token, path);
        expect({ path, status, body }).toMatchObject({
          status: 200,
          body: {
            data: { data: expect.arrayContaining([expect.objectContaining({ id: expect.any(Number) })]) },
          },
        });
        // The envelope of a list, just checked.
        ids.set(path, (body.data as { data: [{ id: number }] }).data[0].id);
      }
      ids.set('/dtt/settings', ids.get('/dtt/templates') ?? 0);
      for (const { path } of reads.filter(({ isList }) => !isList)) {
        const id = ids.get(path.slice(0, path.lastIndexOf('/')));
        const { status, body } = await rest(gateway, token, path.replace('{id}', String(id)));
        expect({ path, status, body }).toMatchObject({
          status: 200,
          body: { ok: true, data: expect.anything() },
        });
        const lists = Object.entries(body.data ?? {}).filter(([, value]) => Array.isArray(value));
        for (const [name, list] of lists) expect([path, name, list.length]).not.toEqual([path, name, 0]);
      }
      const activation = await rest(gateway, token, `/dtt/templates/${ids.get('/dtt/templates')}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"isActive":true}',
      });
      expect(activation.status).toBe(200);
    } finally {
      await gateway.close();
    }
  });

  it('keeps its token in a file for its owner alone', async () => {
    const token = await prepare();
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const count = await database.client.dttSession.count();
    expect(await prepare()).toBe(token);
    expect(await database.client.dttSession.count()).toBe(count);
    expect(await listTokens(database.client, 'demo')).toHaveLength(1);
  });

  it.each([
    ['was lost', () => rm(file)],
    ['is empty', () => writeFile(file, '')],
    ['has a token of another database', () => writeFile(file, `dvt_${'A'.repeat(43)}\n`)],
    ['was left half written', () => rm(file).then(() => writeFile(`${file}.new`, 'dvt_', { mode: 0o644 }))],
  ])('gets a new token when the file %s', async (_, harm) => {
    const before = await prepare();
    const own = await createToken(database.client, 'demo', 'demo');
    await harm();
    const token = await prepare();
    expect(await viewerOf(token)).not.toBeNull();
    expect(await viewerOf(before)).toBeNull();
    expect(await viewerOf(own.token)).not.toBeNull();
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('gets a new token when its own was revoked', async () => {
    const before = await prepare();
    const [kept] = await listTokens(database.client, 'demo');
    await revokeToken(database.client, kept?.id ?? 0);
    const token = await prepare();
    expect(token).not.toBe(before);
    expect(await viewerOf(token)).not.toBeNull();
  });

  it('is without a token when it was revoked and its places are taken', async () => {
    const token = await prepare();
    const { id } = (await findToken(database.sql, token ?? '')) ?? { id: 0 };
    await revokeToken(database.client, id);
    for (let count = 0; count < 5; count++) await createToken(database.client, 'demo', `own ${count}`);
    expect(await prepare()).toBeUndefined();
  });

  it('is not added to a database that holds other data', async () => {
    await database.client.user.create({ data: { username: 'alice' } });
    await writeFile(file, `dvt_${'A'.repeat(43)}\n`);
    expect(await prepare()).toBeUndefined();
    expect(await database.client.user.count()).toBe(1);
  });

  it('is loaded wholly or not at all', async () => {
    await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO away');
    await expect(prepare()).rejects.toThrow();
    expect(await database.client.user.count()).toBe(0);
    await database.pool.query('ALTER TABLE away RENAME TO "OssmDevice"');
    expect(await viewerOf(await prepare())).not.toBeNull();
  });
});
