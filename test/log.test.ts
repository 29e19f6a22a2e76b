/** What the log has of errors: enough to find their cause, and nothing of anybody's data. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger, describeError } from '../src/log.ts';
import { openTestDatabase, type TestDatabase } from './gateway.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
  await database.client.user.create({ data: { id: 1_000, username: 'secret' } });
});
afterAll(() => database?.close());

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.fail('there was no error'),
    (error: unknown) => error,
  );
const sql = (text: string, values: unknown[] = []) => database.pool.query(text, values);
const prisma = () => database.client;

describe('an error of the database', () => {
  it.each<[string, () => Promise<unknown>, string, string]>([
    [
      'a row twice',
      () => sql(`INSERT INTO "User" (username) VALUES ('secret')`),
      '23505',
      'duplicate key value violates unique constraint "User_username_key"',
    ],
    [
      'a value that is none',
      () => sql('SELECT $1::int', ['secret "x"\n\nsecret']),
      '22P02',
      'invalid input syntax for type integer: …',
    ],
    [
      'a value of an enum',
      () => sql(`UPDATE "User" SET "scheduleType" = 'secret'`),
      '22P02',
      'invalid input value for enum "ScheduleType": …',
    ],
    [
      'a column without a value',
      () => sql('INSERT INTO "User" (username) VALUES (NULL)'),
      '23502',
      'null value in column "username" of relation "User" violates not-null constraint',
    ],
    [
      'a check',
      () => sql(`INSERT INTO "Mirror" (id, source, "userId") VALUES (2, 'secret', 1000)`),
      '23514',
      'new row for relation "Mirror" violates check constraint "Mirror_only_one"',
    ],
    [
      'a table that is missing',
      () => sql('SELECT * FROM "Elsewhere"'),
      '42P01',
      'relation "Elsewhere" does not exist',
    ],
    [
      'Prisma: a row twice',
      () => prisma().user.create({ data: { username: 'secret' } }),
      'P2002',
      'Unique constraint failed on the constraint: `User_username_key`',
    ],
    [
      'Prisma: a check',
      () => prisma().mirror.create({ data: { id: 2, source: 'secret', userId: 1_000 } }),
      'P2039',
      'Database error. Code: `23514`. Message: `new row for relation "Mirror" violates check constraint "Mirror_only_one"`',
    ],
    [
      'Prisma: SQL',
      () => prisma().$queryRawUnsafe(`SELECT 'secret'::int`),
      'P2010',
      'Raw query failed. Code: `22P02`. Message: `invalid input syntax for type integer: …`',
    ],
    [
      'Prisma: a number out of range',
      () => prisma().user.update({ where: { id: 1_000 }, data: { rank: 7_777_777_777 } }),
      'P2020',
      'Value out of range for the type: value … is out of range for type integer',
    ],
  ])(
    'is described by its kind, code, message and place, without values: %s',
    async (_, fail, code, message) => {
      const described = describeError(await failureOf(fail()));
      expect(described).toMatchObject({ code, message });
      expect(described.type).toMatch(/^(DatabaseError|PrismaClientKnownRequestError)$/);
      expect(described.stack).toMatch(/^ +at /);
      expect(JSON.stringify(described)).not.toMatch(/secret|7777777777/);
    },
  );

  it('that Prisma found before it asked says nothing of what it was called with', async () => {
    // The types would not let the call pass.
    const where = { id: 'secret', username: 'secret' } as unknown as { id: number };
    const described = describeError(await failureOf(prisma().user.findMany({ where })));
    expect(described.type).toBe('PrismaClientValidationError');
    expect(described.message).toMatch(/^Argument `id`: Invalid value provided\./);
    expect(JSON.stringify(described)).not.toContain('secret');
  });
});

it('the cause of an error is described like the error', async () => {
  const cause = await failureOf(sql('SELECT $1::int', ['secret']));
  const described = describeError(Object.assign(new Error('it failed', { cause }), { detail: 'secret' }));
  expect(described).toMatchObject({ type: 'Error', message: 'it failed', cause: { code: '22P02' } });
  expect(JSON.stringify(described)).not.toContain('secret');
});

it('what is thrown but is no error is not shown', () => {
  expect(describeError({ token: 'secret' })).toEqual({ type: 'object', message: '', stack: '' });
});

it('the log describes every error so', async () => {
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line) => lines.push(line) });
  logger.error({ err: await failureOf(sql('SELECT $1::int', ['secret'])) }, 'request failed');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'request failed', err: { code: '22P02' } });
  expect(lines[0]).not.toContain('secret');
});
