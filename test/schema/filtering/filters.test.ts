/** The meaning of `where` and `orderBy` where it may surprise. `oracle.test.ts` compares all with Prisma's client. */

import { describe, expect, it } from 'vitest';
import { importTemplate } from '../../support/accounts.ts';
import { graphqlOnEveryPath } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);
const { client } = gateway.database;
await importTemplate(client, alice, bob.dttTemplates[0]);
// Alice's newest session has a template of Bob's that she has not imported, her oldest has none.
await client.dttSession.update({
  where: { id: alice.dttSessions[0] ?? 0 },
  data: { templateId: bob.dttTemplates[1], name: null },
});
await client.user.update({
  where: { id: alice.userId },
  data: { activeTemplateId: bob.dttTemplates[0] },
});

async function ask(list: string, type: string, args: { where: object }) {
  const { data, errors } = await graphqlOnEveryPath(
    gateway,
    alice.token,
    `query ($where: ${type}Filter) {
      ${list}(where: $where) { totalCount nodes { databaseId } }
    }`,
    args,
  );
  expect(errors).toBeUndefined();
  return data[list];
}

/** The indices of the sessions that match a filter, among Alice's sessions from the newest to the oldest. */
async function sessions(where: object): Promise<number[]> {
  const { nodes, totalCount } = await ask('dttSessions', 'DttSession', { where });
  expect(totalCount).toBe(nodes.length);
  return nodes.map(({ databaseId }: { databaseId: number }) => alice.dttSessions.indexOf(databaseId));
}

const at = (minutes: number) => `2026-01-01T00:${minutes}:00Z`;

describe('a filter', () => {
  // `passed` of the sessions is null, false, true, false, true, false; the first is at 01:00, each next ten minutes earlier.
  it.each<[string, object, number[]]>([
    ['with or accepts a single condition without a list', { or: { passed: { eq: true } } }, [2, 4]],
    [
      'by a field of the linked record never matches a record that the viewer cannot read',
      { template: { name: { contains: 'of bob' } } },
      [],
    ],
  ])('%s', async (_, where, left) => {
    expect(await sessions(where)).toEqual(left);
  });

  it('of templates compares the owner and whether the template is active', async () => {
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
    expect(await templates({ ownerId: { eq: bob.userId } })).toEqual([imported]);
    const query = '{ dttTemplates { nodes { databaseId isImported viewerCanActivate } } }';
    const { data } = await graphqlOnEveryPath(gateway, alice.token, query);
    for (const { databaseId, ...its } of data.dttTemplates.nodes) {
      const isImported = databaseId === imported;
      expect(its).toEqual({ isImported, viewerCanActivate: !isImported });
    }
  });

  it('applies to devices of every kind, and to the lists of the viewer', async () => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `{
        visited: devices(where: { lastVisitedAt: { isNull: false } }) { totalCount nodes { lastVisitedAt } }
        never: devices(where: { not: { lastVisitedAt: { gte: "2020-01-01T00:00:00Z" } } }) { totalCount nodes { lastVisitedAt } }
        viewer { dttSessions(where: { passed: { eq: true } }) { totalCount } all: dttSessions { totalCount } }
      }`,
    );
    expect(errors).toBeUndefined();
    const times = (name: string): unknown[] =>
      data[name].nodes.map(({ lastVisitedAt }: { lastVisitedAt: string | null }) => lastVisitedAt);
    expect(times('visited')).not.toContain(null);
    expect(data.visited.totalCount).toBe(times('visited').length);
    expect(new Set(times('never'))).toEqual(new Set([null]));
    expect(data.never.totalCount).toBe(times('never').length);
    expect(data.viewer.dttSessions.totalCount).toBe(2);
    expect(data.viewer.all.totalCount).toBe(alice.dttSessions.length);
  });

  it('ignores comparisons whose variable is not given', async () => {
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
});

it.each(['contains', 'startsWith'])(
  'an emoji counts as one of the 200 characters that %s allows',
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

const nested = (depth: number): object => (depth === 0 ? {} : { not: nested(depth - 1) });

it.each<[string, object]>([
  ['conditions', { and: Array(25).fill({ passed: { eq: true } }) }],
  ['levels', nested(50)],
  ['joins', { or: Array.from({ length: 6 }, (_, index) => ({ template: { databaseId: { eq: index } } })) }],
])('a filter may have as many %s as are allowed', async (_, where) => {
  const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
  expect((await graphqlOnEveryPath(gateway, alice.token, query, { where })).errors).toBeUndefined();
});

describe('an invalid filter', () => {
  it.each<[string, object, string]>([
    [
      'with NUL in a text',
      { name: { contains: 'a\0' } },
      'where.name.contains has a character that no text can have',
    ],
    [
      'with a lone surrogate',
      { not: { name: { in: ['a', '\ud800'] } } },
      'where.not.name.in has a character that',
    ],
    [
      'with too many items in a list',
      { databaseId: { in: Array(101).fill(1) } },
      'at most 100 items in where.databaseId.in',
    ],
    [
      'with too many conditions',
      { and: Array(26).fill({ passed: { eq: true } }) },
      'at most 50 conditions: each comparison, each link, each `not`, and each item of `and` and `or` counts as one',
    ],
    [
      'with a text of too many emoji',
      { name: { startsWith: '😀'.repeat(201) } },
      'where.name.startsWith must have at most 200',
    ],
    [
      'with too many joins',
      { or: Array.from({ length: 7 }, (_, index) => ({ template: { databaseId: { eq: index } } })) },
      'where must join at most 12 tables, and joins 14',
    ],
    ['with too many levels', nested(51), 'where must have at most 50 conditions: '],
  ])('%s is an error of the argument where, beside the data of other fields', async (_, where, message) => {
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
    [{ or: [{}, { name: { isNull: null } }] }, 'where.or[1].name.isNull must not be null'],
    [{ not: { createdAt: null } }, 'where.not.createdAt must not be null'],
    [{ or: null }, 'where.or must not be null'],
    [
      { template: null },
      'where.template must not be null: not: { template: {} } asks for records without one',
    ],
  ])(
    'with null is an error that names isNull or not where one of them can be meant: %j',
    async (where, message) => {
      const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
      const { errors } = await graphqlOnEveryPath(gateway, alice.token, query, { where });
      expect(errors).toEqual([
        expect.objectContaining({ message, extensions: { code: 'BAD_USER_INPUT', argument: 'where' } }),
      ]);
    },
  );

  it('with an infinite number is an error of the argument where', async () => {
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
});
