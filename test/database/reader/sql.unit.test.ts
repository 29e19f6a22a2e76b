/** The statements that are sent to a pool, and the errors of queries that are not supported. Without a database. */

import pg from 'pg';
import { expect, it } from 'vitest';
import { Batch, createSql, maxStatements, statementName } from '../../../src/database/reader/sql.ts';
import { selectStatement } from '../../../src/database/reader/statement.ts';

/** A pool that fails with each of these codes first, and then returns the rows. */
function fakePool(rows: object[], ...codes: string[]) {
  const sent: unknown[] = [];
  const pool = {
    async query({ statements }: Batch) {
      sent.push(...statements);
      const code = codes.shift();
      if (code !== undefined)
        throw Object.assign(new pg.DatabaseError(`failed with ${code}`, 0, 'error'), { code });
      return [rows];
    },
  };
  // The only method of a pool that the module uses.
  return { sent, pool: pool as unknown as pg.Pool };
}

it.each(['40001', '40P01'])(
  'a write that is aborted with %s is retried once, and a read is not retried',
  async (code) => {
    const write = (pool: pg.Pool) =>
      createSql(pool).write({ text: 'UPDATE …', values: [7] }, 'User', { select: { id: true } });
    const once = fakePool([{ done: true }], code);
    expect(await write(once.pool)).toEqual([[{ done: true }], []]);
    const both = [{ text: 'UPDATE …', values: [7] }, { text: expect.stringMatching(/^SELECT/) }];
    expect(once.sent).toMatchObject([...both, ...both]);
    const twice = fakePool([], code, code, code);
    await expect(write(twice.pool)).rejects.toThrow(code);
    expect(twice.sent).toHaveLength(4);
    const read = fakePool([], code);
    await expect(createSql(read.pool).run('SELECT …', [])).rejects.toThrow(code);
    expect(read.sent).toHaveLength(1);
  },
);

it.each(['26000', '42P05'])(
  'a statement whose name the session does not know (%s) is sent again without it, and later ones have no name',
  async (code) => {
    const { pool, sent } = fakePool([{ one: 1 }], code);
    const sql = createSql(pool, (text) => `name of ${text}`);
    expect(await sql.run('SELECT 1', [])).toEqual([{ one: 1 }]);
    await sql.run('SELECT 2', []);
    expect(sent).toEqual([
      { name: 'name of SELECT 1', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 1', values: [] },
      { name: '', text: 'SELECT 2', values: [] },
    ]);
  },
);

it('a read fails when the check that is sent with it does', async () => {
  const statement = { text: 'SELECT now()', values: [] };
  const check = (rows: object[]) => expect(rows).toEqual([{ now: 1 }]);
  const read = (...results: object[][]) => {
    const pool = { query: async () => results } as unknown as pg.Pool;
    return createSql(pool, () => '', { statement, check }).run('SELECT 2', []);
  };
  expect(await read([{ two: 2 }], [{ now: 1 }])).toEqual([{ two: 2 }]);
  await expect(read([{ two: 2 }], [{ now: 0 }])).rejects.toThrow();
});

it('a connection keeps the most recently used statements, and parses one without a name each time', () => {
  const kinds = ['close', 'parse', 'bind', 'describe', 'execute', 'sync'];
  const values = [null, 7, new Date(0), ['"', 'b'], Buffer.of(255)];
  const sent = (name: string, connection: object) => {
    const messages: unknown[] = [];
    for (const kind of kinds)
      Object.assign(connection, { [kind]: (message?: object) => messages.push({ kind, ...message }) });
    // It has all that a batch calls.
    new Batch([{ name, text: 'SELECT', values }]).submit(connection as pg.Connection);
    return messages;
  };
  const messages = (name: string) => [
    ...(name === '' ? [] : [{ kind: 'close', type: 'S', name }]),
    { kind: 'parse', name, text: 'SELECT', types: [] },
    {
      kind: 'bind',
      statement: name,
      values: [null, '7', '1970-01-01T00:00:00.000Z', '{"\\"","b"}', '\\xff'],
    },
    ...[{ kind: 'describe', type: 'P', name: '' }, { kind: 'execute' }, { kind: 'sync' }],
  ];
  for (const one of [0, 1].map(() => ({ stream: { cork() {}, uncork() {} } }))) {
    expect([sent('a', one), sent('b', one)]).toEqual([messages('a'), messages('b')]);
    expect([sent('a', one), sent('', one)]).toEqual([messages('a').slice(2), messages('')]);
    expect(sent('', one)).toEqual(messages(''));
    for (let number = 2; number < maxStatements; number++) sent(`${number}`, one);
    // One more takes the place of the one that was used least recently.
    expect(sent('more', one)).toEqual(
      messages('more').toSpliced(1, 0, { kind: 'close', type: 'S', name: 'b' }),
    );
    expect(sent('a', one)).toEqual(messages('a').slice(2));
  }
});

it('a statement has a name of its own, the same in every process, unless it is very long', () => {
  const [short, long, longer] = ['SELECT 1', 'a'.repeat(8_000), 'a'.repeat(8_001)].map(statementName);
  expect([short, long]).toEqual(['dovetail_4ATr1bVTKkuFmEpi-K1IqB', 'dovetail_467hclR2Mh9yetigfOU--1']);
  expect(longer).toBe('');
});

const select = { id: true };

it('a part of a text is asked for by a pattern', () => {
  const where = { bubbleId: { contains: 'é', startsWith: 'ü', mode: 'insensitive' } };
  expect(selectStatement('DttSession', { select, where }).values).toEqual(['%é%', 'ü%']);
});

it.each<[message: string, query: object]>([
  ['DttSession has no field lastVisited', { select: { lastVisited: true } }],
  ['nothing is selected of DttSession', { select: {} }],
  ['DttSession.bubbleId is no list of rows', { select: { bubbleId: false } }],
  ['TrainerSegment has no field username', { select: { segments: { select: { username: true } } } }],
  ['segments takes true, or a select', { select: { segments: { take: 1 } } }],
  ['DttSession.owner is no list of rows', { select: { owner: { select } } }],
  ['nothing is counted of DttSession', { select: { _count: { select: {} } } }],
  ['DttSession has no field dttDevices', { select: { _count: { select: { dttDevices: true } } } }],
  [
    'the count of segments takes where and nothing else',
    { select: { _count: { select: { segments: { where: {}, take: 1 } } } } },
  ],
  ['DttSession has no field username', { where: { username: 'alice' } }],
  ['ApiToken.digest is of type Bytes', { where: { owner: { tokens: { some: { digest: Buffer.of(1) } } } } }],
  ['notIn is not an operator of this module', { where: { id: { notIn: [1] } } }],
  ['in is not an operator of this module', { where: { id: { in: 1 } } }],
  ['nothing is said of t0."id"', { where: { id: {} } }],
  ['undefined cannot be compared with', { where: { id: { lt: undefined } } }],
  ['null cannot be compared with', { where: { createdAt: { lt: null } } }],
  ['null cannot be compared with', { where: { bubbleId: { in: ['x', null] } } }],
  ['contains is not an operator of this module', { where: { bubbleId: { contains: 'a' } } }],
  [
    'contains is not an operator of this module',
    { where: { bubbleId: { contains: 1, mode: 'insensitive' } } },
  ],
  ['equals is not an operator of this module', { where: { bubbleId: { equals: 'a', mode: 'insensitive' } } }],
  ['"a\\u0000" is nothing that a column can hold', { where: { bubbleId: 'a\0' } }],
  ['"\\udc00" is nothing that a column can hold', { where: { bubbleId: { in: ['\udc00'] } } }],
  ['Invalid time value', { where: { createdAt: new Date(Number.NaN) } }],
  ['[] is not a list of conditions', { where: { AND: [] } }],
  ['[] is not a list of conditions', { where: { OR: [] } }],
  ['[{"id":1},7] is not a list of conditions', { where: { OR: [{ id: 1 }, 7] } }],
  ['[null] is not a list of conditions', { where: { segments: { every: { id: 1 } } } }],
  ['[null] is not a list of conditions', { where: { segments: { some: {}, none: {} } } }],
  ['DttSession.owner is no column', { orderBy: { owner: 'asc' } }],
])('is an error, %s: %j', (message, query) => {
  expect(() => selectStatement('DttSession', { select, ...query })).toThrow(message);
});
