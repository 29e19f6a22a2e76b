import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/token.ts';
import { createViewers, type Viewers } from '../../src/auth/viewer.ts';
import type { ChangeFeed } from '../../src/database/feed.ts';
import { openTestDatabase, type TestDatabase } from '../gateway.ts';

let database: TestDatabase;
let feed: ChangeFeed;
let viewers: Viewers;
let userId: number;
let tokenId: number;
let token: string;

beforeAll(async () => {
  database = await openTestDatabase();
  feed = await database.follow();
  ({ id: userId } = await database.client.user.create({
    data: { username: 'alice', subscriptionTier: 'ultra' },
  }));
});
beforeEach(async () => {
  await database.client.apiToken.deleteMany();
  ({ id: tokenId, token } = await createToken(database.client, 'alice', 'test'));
  viewers = createViewers(database.sql, feed);
});
afterAll(async () => {
  await feed?.close();
  await database?.close();
});

const viewerOf = async (header: string | undefined) =>
  viewers.known(header) ?? (await viewers.authenticate(header));
const lastUsed = async () =>
  (await database.client.apiToken.findUniqueOrThrow({ where: { id: tokenId } })).lastUsedAt;

describe('authenticate', () => {
  it.each([
    ['as documented', (secret: string) => `Bearer ${secret}`],
    ['in lower case', (secret: string) => `bearer ${secret}`],
    ['in upper case', (secret: string) => `BEARER ${secret}`],
    ['with spaces around', (secret: string) => `Bearer   ${secret} `],
  ])('knows the viewer by a header written %s', async (_, header) => {
    expect(await viewerOf(header(token))).toEqual({ id: userId, tokenId });
  });

  it.each([
    ['a missing header', () => undefined],
    ['an empty one', () => ''],
    ['the scheme alone', () => 'Bearer'],
    ['the token alone', (secret: string) => secret],
    ['another scheme', (secret: string) => `Basic ${secret}`],
    ['no space', (secret: string) => `Bearer${secret}`],
    ['a tab for the space', (secret: string) => `Bearer\t${secret}`],
    ['something behind the token', (secret: string) => `Bearer ${secret} ${secret}`],
    ['two credentials', (secret: string) => `Bearer ${secret}, Bearer ${secret}`],
    ['half a token', (secret: string) => `Bearer ${secret.slice(0, -1)}`],
    ['a token in the wrong case', (secret: string) => `Bearer ${secret.toUpperCase()}`],
    ['an unknown token', () => `Bearer dvt_${'A'.repeat(43)}`],
    ['a long nonsense', () => `Bearer ${'x'.repeat(100_000)}`],
  ])('knows nobody by %s', async (_, header) => {
    expect(await viewerOf(header(token))).toBeNull();
  });

  it('remembers a token, without asking the database again', async () => {
    expect(viewers.known(`Bearer ${token}`)).toBeUndefined();
    await viewers.authenticate(`Bearer ${token}`);
    expect(viewers.known(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
  });

  it('refuses a token as soon as its revocation is announced', async () => {
    expect(await viewerOf(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
    const announced = new Promise<void>((settle) => {
      const stop = feed.subscribe(() => {
        stop();
        settle();
      });
    });
    await revokeToken(database.client, tokenId);
    await announced;
    expect(await viewerOf(`Bearer ${token}`)).toBeNull();
    expect(await viewers.isValid({ id: userId, tokenId })).toBe(false);
  });

  it('does not remember a token that was revoked while it was looked up', async () => {
    const looking = viewers.authenticate(`Bearer ${token}`);
    await revokeToken(database.client, tokenId);
    await looking;
    await expect.poll(() => viewerOf(`Bearer ${token}`)).toBeNull();
  });
});

describe('the last-used time', () => {
  it('is written once for a burst of requests', async () => {
    await database.pool.query(`
      CREATE TABLE IF NOT EXISTS writes (token int);
      CREATE OR REPLACE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO writes VALUES (NEW.id); RETURN NEW; END $$;
      CREATE OR REPLACE TRIGGER count_writes AFTER UPDATE ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION count_write()`);
    await Promise.all(Array.from({ length: 20 }, () => viewerOf(`Bearer ${token}`)));
    await expect.poll(lastUsed).toBeInstanceOf(Date);
    const written = await lastUsed();
    await viewerOf(`Bearer ${token}`);
    // What the burst has under way is done before this, since it stands in the same queue.
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
    });
    const { rows } = await database.pool.query('SELECT count(*)::int FROM writes WHERE token = $1', [
      tokenId,
    ]);
    expect(rows).toEqual([{ count: 1 }]);
    expect(await lastUsed()).toEqual(written);
  });

  it.each([
    ['59 seconds', 59_000, false],
    ['61 seconds', 61_000, true],
  ])('after %s is written again: %s', async (_, age, isWritten) => {
    const before = new Date(Date.now() - age);
    await database.client.apiToken.update({ where: { id: tokenId }, data: { lastUsedAt: before } });
    await viewerOf(`Bearer ${token}`);
    if (isWritten)
      await expect.poll(async () => (await lastUsed())?.getTime()).toBeGreaterThan(before.getTime());
    else expect(await lastUsed()).toEqual(before);
  });

  it('is not waited for', async ({ skip }) => {
    skip(
      inject('engine').kind !== 'postgres',
      'on the embedded engine an open transaction has the engine to itself',
    );
    await database.client.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT id FROM "ApiToken" WHERE id = ${tokenId} FOR UPDATE`;
      expect(await viewerOf(`Bearer ${token}`)).toEqual({ id: userId, tokenId });
      expect(await lastUsed()).toBeNull();
    });
    await expect.poll(lastUsed).toBeInstanceOf(Date);
  });
});
