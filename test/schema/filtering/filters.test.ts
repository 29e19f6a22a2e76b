/** What `where` and `orderBy` mean, case by case. `oracle.test.ts` beside it holds them against Prisma's client. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { executions } from '../../../src/schema/compile.ts';
import { literalOf } from '../../fuzz/requests.ts';
import { type Account, createAccount, importTemplate } from '../../support/accounts.ts';
import {
  type GraphqlResponse,
  graphqlOnce,
  graphqlOnEveryPath,
  openTestGateway,
  type TestGateway,
} from '../../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  const { client, pool } = gateway.database;
  alice = await createAccount(client, 'alice');
  bob = await createAccount(client, 'bob');
  await importTemplate(client, alice, bob.dttTemplates[0]);
  // Alice's newest session was with a template of Bob's that she has not imported, her oldest with none.
  await client.dttSession.update({
    where: { id: alice.dttSessions[0] ?? 0 },
    data: { templateId: bob.dttTemplates[1], name: null },
  });
  await pool.query('UPDATE "User" SET "activeTemplateId" = $1 WHERE id = $2', [
    bob.dttTemplates[0],
    alice.userId,
  ]);
});
afterAll(() => gateway?.close());

/** Asks with the arguments in variables, and written out: it makes no difference. */
async function ask(list: string, type: string, args: { where?: unknown; orderBy?: unknown }) {
  const selection = '{ totalCount nodes { databaseId } }';
  const written = Object.entries(args).map(([name, value]) => `${name}: ${withNames(literalOf(value))}`);
  const { data, errors } = await graphqlOnEveryPath(
    gateway,
    alice.token,
    `query ($where: ${type}Filter, $orderBy: [${type}Order!]) {
      asked: ${list}(where: $where, orderBy: $orderBy) ${selection}
      written: ${list}(${written.join(' ')}) ${selection}
    }`,
    args,
  );
  expect(errors).toBeUndefined();
  expect(data.written).toEqual(data.asked);
  return data.asked;
}

/** The names of enumerations stand without quotes in a document. */
const withNames = (text: string) => text.replace(/(field|direction|in|eq): \[?"([A-Z_]+)"/g, '$1: $2');

/** The places of Alice's sessions, which come newest first, that a filter leaves. */
async function sessions(where: unknown, orderBy?: unknown): Promise<number[]> {
  const { nodes, totalCount } = await ask('dttSessions', 'DttSession', {
    ...(where !== undefined && { where }),
    ...(orderBy !== undefined && { orderBy }),
  });
  expect(totalCount).toBe(nodes.length);
  return nodes.map(({ databaseId }: { databaseId: number }) => alice.dttSessions.indexOf(databaseId));
}

const all = [0, 1, 2, 3, 4, 5];
const at = (minutes: number) => `2026-01-01T00:${minutes}:00Z`;

describe('a filter', () => {
  // Passed: null, false, true, false, true, false. Every ten minutes from 01:00 down.
  it.each<[string, object, number[]]>([
    ['that is empty leaves all', {}, all],
    ['of empty comparisons leaves all', { name: {}, passed: {} }, all],
    ['by a truth leaves those that have it', { passed: { eq: true } }, [2, 4]],
    ['by no value leaves those without one', { passed: { isNull: true } }, [0]],
    ['by some value leaves those with one', { passed: { isNull: false } }, [1, 2, 3, 4, 5]],
    ['by several fields wants them all', { passed: { eq: false }, createdAt: { gt: at(20) } }, [1, 3]],
    ['by a span of time has its borders as told', { createdAt: { gte: at(20), lt: at(50) } }, [2, 3, 4]],
    ['by an instant takes any offset', { createdAt: { eq: '2026-01-01T01:20:00+01:00' } }, [4]],
    ['by some instants leaves those', { createdAt: { in: [at(10), at(40)] } }, [2, 5]],
    ['by none of them leaves nothing', { createdAt: { in: [] } }, []],
    ['by another instant leaves the others', { createdAt: { not: at(10) } }, [0, 1, 2, 3, 4]],
    ['by a part of a name is blind to case', { name: { contains: 'ION 3 OF' } }, [3]],
    ['by the start of a name is blind to case', { name: { startsWith: 'sEsSiOn' } }, [1, 2, 3, 4, 5]],
    ['by the start of a name does not find its middle', { name: { startsWith: 'ession' } }, []],
    ['by a whole name is not', { name: { eq: 'session 3 of alice' } }, []],
    ['by another name passes over those without one', { name: { not: 'Session 3 of alice' } }, [1, 2, 4, 5]],
    ['by a percent sign looks for one', { name: { contains: '%' } }, []],
    ['by an underscore looks for one', { name: { contains: 'Session_3' } }, []],
    ['by a backslash looks for one', { name: { contains: '\\' } }, []],
    ['by a quote looks for one', { name: { contains: `'` } }, []],
    ['by nothing in a name leaves those with one', { name: { contains: '' } }, [1, 2, 3, 4, 5]],
    ['of no alternatives leaves nothing', { or: [] }, []],
    ['of an alternative that says nothing leaves all', { or: [{ passed: { eq: true } }, {}] }, all],
    ['of no conditions leaves all', { and: [] }, all],
    [
      'of alternatives wants one',
      { or: [{ passed: { eq: true } }, { createdAt: { lte: at(10) } }] },
      [2, 4, 5],
    ],
    ['of conditions wants all', { and: [{ passed: { eq: true } }, { createdAt: { lte: at(20) } }] }, [4]],
    ['of one alternative may leave out the list', { or: { passed: { eq: true } } }, [2, 4]],
    ['turned around leaves exactly the others', { not: { passed: { eq: true } } }, [0, 1, 3, 5]],
    [
      'turned around by a name leaves those without one',
      { not: { name: { contains: '3' } } },
      [0, 1, 2, 4, 5],
    ],
    ['turned around twice is itself', { not: { not: { passed: { eq: true } } } }, [2, 4]],
    ['that says nothing leaves nothing, turned around', { not: {} }, []],
    ['of none leaves all, turned around', { not: { createdAt: { in: [] } } }, all],
    ['by a link wants one that is there', { template: {} }, [1, 2, 3, 4]],
    ['by no link wants none that can be seen', { not: { template: {} } }, [0, 5]],
    ['by what is linked', { template: { name: { startsWith: 'program 0' } } }, [2, 4]],
    ['by what is linked to what is not the viewer’s', { template: { name: { contains: 'of bob' } } }, []],
    [
      'by what is linked, turned around',
      { not: { template: { name: { startsWith: 'program 0' } } } },
      [0, 1, 3, 5],
    ],
    ['by what is linked and is not', { template: { not: { name: { startsWith: 'program 0' } } } }, [1, 3]],
    ['by whether a link is the active one', { template: { isActive: { eq: true } } }, []],
    [
      'by two links',
      { trainer: { lastVisitedAt: { gt: at(20) } }, template: { isPublic: { eq: true } } },
      [2, 4],
    ],
  ])('%s', async (_, where, left) => {
    expect(await sessions(where)).toEqual(left);
  });

  it('by an id knows the ids of what is gone', async () => {
    const { client } = gateway.database;
    const [gone = 0] = alice.dttSessions;
    const kept = await client.dttSession.findUniqueOrThrow({ where: { id: gone } });
    await client.dttSession.update({
      where: { id: gone },
      data: { trainerId: null, goneTrainerId: 77, templateId: null, goneTemplateId: 78 },
    });
    try {
      const [one] = alice.dttDevices;
      expect(await sessions({ trainerId: { eq: 77 } })).toEqual([0]);
      expect(await sessions({ trainerId: { not: 77 } })).toEqual([1, 2, 3, 4, 5]);
      expect(await sessions({ not: { trainerId: { eq: one } } })).toEqual([0, 1, 3, 5]);
      expect(await sessions({ trainerId: { in: [77, one] } })).toEqual([0, 2, 4]);
      expect(await sessions({ templateId: { gte: 78, lte: 78 } })).toEqual([0]);
      expect(await sessions({ templateId: { isNull: true } })).toEqual([5]);
      expect(await sessions({ templateId: { isNull: false } })).toEqual([0, 1, 2, 3, 4]);
      expect(await sessions({ trainer: {} })).toEqual([1, 2, 3, 4, 5]);
    } finally {
      await client.dttSession.update({ where: { id: gone }, data: kept });
    }
  });

  it('knows of a template whose it is, and whether it is active', async () => {
    const templates = async (where: object) => {
      const { nodes } = await ask('dttTemplates', 'DttTemplate', { where });
      return nodes.map(({ databaseId }: { databaseId: number }) => databaseId);
    };
    const [imported] = bob.dttTemplates;
    expect(await templates({ isActive: { eq: true } })).toEqual([imported]);
    expect(await templates({ isActive: { eq: false } })).toEqual([...alice.dttTemplates]);
    expect(await templates({ isImported: { eq: true } })).toEqual([imported]);
    expect(await templates({ isImported: { eq: false } })).toEqual([...alice.dttTemplates]);
    expect(await templates({ viewerCanActivate: { eq: true } })).toEqual([...alice.dttTemplates]);
    expect(await templates({ not: { viewerCanActivate: { eq: true } } })).toEqual([imported]);
    expect(await templates({ ownerId: { eq: bob.userId } })).toEqual([imported]);
  });

  it('finds an enumeration by its names', async () => {
    for (const [where, count] of [
      [{ scheduleType: { eq: 'AUTO' } }, 1],
      [{ scheduleType: { in: ['WEEKLY', 'SINGLE'] } }, 0],
      [{ not: { scheduleType: { eq: 'WEEKLY' } } }, 1],
    ] as const) {
      const text = 'query ($where: UserFilter) { users(where: $where) { totalCount } }';
      const { data } = await graphqlOnEveryPath(gateway, alice.token, text, { where });
      expect(data).toEqual({ users: { totalCount: count } });
    }
    const { data } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      '{ users(where: { scheduleType: { in: [AUTO] } }, orderBy: { field: SCHEDULE_TYPE, direction: ASC }) { totalCount } }',
    );
    expect(data).toEqual({ users: { totalCount: 1 } });
  });

  it('holds of lists beneath records, and of devices of every kind', async () => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `query ($passed: Boolean) {
        dttDevices { nodes {
          passed: sessions(where: { passed: { eq: $passed } }) { totalCount nodes { databaseId } }
          failed: sessions(where: { passed: { eq: false } }) { totalCount nodes { databaseId } }
        } }
        visited: devices(where: { lastVisitedAt: { isNull: false } }) { totalCount nodes { lastVisitedAt } }
        never: devices(where: { not: { lastVisitedAt: { gte: "2020-01-01T00:00:00Z" } } }) { totalCount nodes { lastVisitedAt } }
        viewer { dttSessions(where: { passed: { eq: $passed } }) { totalCount } }
      }`,
      { passed: true },
    );
    expect(errors).toBeUndefined();
    const [, one, two, three, four, five] = alice.dttSessions.map((databaseId) => ({ databaseId }));
    expect(data.dttDevices.nodes).toEqual([
      { passed: { totalCount: 2, nodes: [two, four] }, failed: { totalCount: 0, nodes: [] } },
      { passed: { totalCount: 0, nodes: [] }, failed: { totalCount: 3, nodes: [one, three, five] } },
      { passed: { totalCount: 0, nodes: [] }, failed: { totalCount: 0, nodes: [] } },
    ]);
    const times = (name: string) =>
      data[name].nodes.map(({ lastVisitedAt }: { lastVisitedAt: string | null }) => lastVisitedAt);
    expect([data.visited.totalCount, times('visited').includes(null)]).toEqual([
      data.visited.nodes.length,
      false,
    ]);
    expect(new Set(times('never'))).toEqual(new Set([null]));
    expect(data.never.totalCount).toBe(data.never.nodes.length);
    expect(data.viewer.dttSessions.totalCount).toBe(2);
  });

  it('leaves out what is not given, and so finds all', async () => {
    const text = `query ($passed: Boolean, $after: DateTime, $names: [String!]) {
      dttSessions(where: { passed: { eq: $passed }, createdAt: { gt: $after }, name: { in: $names } }) { totalCount } }`;
    for (const [variables, totalCount] of [
      [{}, 6],
      [{ passed: true }, 2],
      [{ after: at(30) }, 3],
      [{ names: 'Session 3 of alice' }, 1],
    ] as const) {
      const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, text, variables);
      expect(errors).toBeUndefined();
      expect(data).toEqual({ dttSessions: { totalCount } });
    }
  });

  it('is compiled, in variables and written out', async () => {
    const texts = [
      'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }',
      `query ($passed: Boolean) { dttSessions(where: { and: [{ passed: { eq: $passed } }, { createdAt: { gt: "${at(10)}" } }] }) { totalCount } }`,
      '{ users(where: { scheduleType: { eq: AUTO } }) { totalCount } }',
    ];
    for (const text of texts) {
      const variables = text.includes('$where') ? { where: { createdAt: { gt: at(10) } } } : {};
      await graphqlOnce(gateway, alice.token, text, variables);
      const before = { ...executions };
      await graphqlOnce(gateway, alice.token, `${text} `, variables);
      await graphqlOnce(gateway, alice.token, `${text} `, { ...variables, unused: 1 });
      expect(executions.compiled - before.compiled, text).toBe(1);
      expect(executions.repeated).toBe(before.repeated);
    }
  });
});

it.each(['contains', 'startsWith'])(
  'counts an emoji as one of the 200 characters that %s takes',
  async (operator) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }',
      { where: { name: { [operator]: '😀'.repeat(200) } } },
    );
    expect(errors).toBeUndefined();
    expect(data).toEqual({ dttSessions: { totalCount: 0 } });
  },
);

describe('a filter that cannot be', () => {
  const nested = (depth: number): object => (depth === 0 ? {} : { not: nested(depth - 1) });
  it.each<[string, object, string]>([
    [
      'has NUL in a text',
      { name: { contains: 'a\0' } },
      'where.name.contains has a character that no text can have',
    ],
    [
      'has half a character',
      { not: { name: { in: ['a', '\ud800'] } } },
      'where.not.name.in has a character that',
    ],
    [
      'has too many items',
      { databaseId: { in: Array(101).fill(1) } },
      'at most 100 items in where.databaseId.in',
    ],
    ['has too many conditions', { and: Array(26).fill({ passed: { eq: true } }) }, 'at most 50 conditions'],
    ['says nothing too often', { or: Array(51).fill({}) }, 'at most 50 conditions'],
    ['has too many links', { or: Array(26).fill({ template: {} }) }, 'at most 50 conditions'],
    [
      'looks for a very long text',
      { name: { contains: 'é'.repeat(201) } },
      'where.name.contains must have at most 200',
    ],
    [
      'looks for a very long text of emoji',
      { name: { startsWith: '😀'.repeat(201) } },
      'where.name.startsWith must have at most 200',
    ],
    ['is too deep', nested(6), 'where must have at most 5 levels of conditions'],
  ])('%s is an error of its argument', async (_, where, message) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } viewer { username } }',
      { where },
    );
    expect(data).toEqual({ dttSessions: null, viewer: { username: 'alice' } });
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringContaining(message),
        extensions: { code: 'BAD_USER_INPUT', argument: 'where' },
      }),
    ]);
  });

  const orWithout = ': isNull asks for records without a value';
  it.each<[object, string]>([
    [{ passed: { eq: null } }, `where.passed.eq must not be null${orWithout}`],
    [{ template: { tagline: null } }, `where.template.tagline must not be null${orWithout}`],
    [{ or: [{}, { name: { isNull: null } }] }, 'where.or[1].name.isNull must not be null'],
    [{ createdAt: { gte: null } }, 'where.createdAt.gte must not be null'],
    [{ not: { createdAt: null } }, 'where.not.createdAt must not be null'],
    [{ or: null }, 'where.or must not be null'],
    [
      { template: null },
      'where.template must not be null: not: { template: {} } asks for records without one',
    ],
  ])('%j is told what asks for no value, where anything does', async (where, message) => {
    const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
    const { errors } = await graphqlOnEveryPath(gateway, alice.token, query, { where });
    expect(errors).toEqual([
      expect.objectContaining({ message, extensions: { code: 'BAD_USER_INPUT', argument: 'where' } }),
    ]);
  });

  it('compares with no finite number is an error of its argument', async () => {
    const where = '{ template: { targetDepth: { lt: 1e999 } } }';
    const { errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `{ dttSessions(where: ${where}) { totalCount } }`,
    );
    expect(errors).toEqual([
      expect.objectContaining({
        message: 'where.template.targetDepth.lt must be a finite number',
        extensions: { code: 'BAD_USER_INPUT', argument: 'where' },
      }),
    ]);
  });

  it.each([
    ['conditions without end', { and: Array.from({ length: 5_001 }, () => ({})) }],
    ['items without end', { trainerId: { in: Array.from({ length: 5_001 }, (_, id) => id) } }],
    ['both', { and: Array.from({ length: 60 }, () => ({ name: { in: Array(100).fill('x') } })) }],
  ])('has %s is an error of the request, which is told before any of them is read', async (_, where) => {
    const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
    for (let round = 0; round < 2; round++) {
      const { errors } = await graphqlOnEveryPath(gateway, alice.token, query, { where });
      expect(errors).toEqual([
        expect.objectContaining({
          message: 'The variables have more than 5000 values; at most 5000 are allowed',
          extensions: { code: 'BAD_USER_INPUT' },
        }),
      ]);
    }
  });

  it('is nested without end is an error of the request', async () => {
    const depth = 30_000;
    const where = `${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`;
    const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
    for (let round = 0; round < 2; round++) {
      const response = await fetch(`${gateway.url}/graphql`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' },
        body: `{"query":${JSON.stringify(query)},"variables":{"where":${where}}}`,
      });
      const { errors }: GraphqlResponse = (await response.json()) as GraphqlResponse;
      expect(errors).toEqual([
        expect.objectContaining({
          message: 'The variables are nested too deeply',
          extensions: { code: 'BAD_USER_INPUT' },
        }),
      ]);
    }
  });
});
