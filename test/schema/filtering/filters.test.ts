/** The meaning of `where` and `orderBy` where it may surprise. `oracle.test.ts` compares all with Prisma's client. */

import { describe, expect, it } from 'vitest';
import { importTemplate } from '../../support/accounts.ts';
import { graphqlOnEveryPath } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);
const { client } = gateway.database;
const imported = bob.dttTemplates[0];
await importTemplate(client, alice, imported);
// In a mirror, the owner may have no account.
await client.mirror.create({ data: { source: 'https://example.com' } });
const foreignOwnerId = 4_711;
const foreign = { bubbleId: 'foreign', name: 'foreign', foreignOwnerId, targetDepth: 1, targetWindow: 1 };
const { id: ownerless } = await client.dttTemplate.create({ data: foreign });
await importTemplate(client, alice, ownerless);
await client.user.update({
  where: { id: alice.userId },
  data: { activeTemplateId: imported },
});

const at = (minutes: number) => `2026-01-01T00:${minutes}:00Z`;

describe('a filter', () => {
  it('of templates compares the owner and whether the template is active', async () => {
    const own = [...alice.dttTemplates];
    const filtered =
      'query ($where: DttTemplateFilter) { dttTemplates(where: $where) { nodes { databaseId } } }';
    for (const [where, left] of [
      [{ isActive: { eq: true } }, [imported]],
      [{ isActive: { eq: false } }, [ownerless, ...own]],
      [{ isImported: { eq: true } }, [ownerless, imported]],
      [{ isImported: { eq: false } }, own],
      [{ viewerCanActivate: { eq: true } }, own],
      [{ viewerCanActivate: { eq: false } }, [ownerless, imported]],
      [{ ownerId: { eq: bob.userId } }, [imported]],
      [{ ownerId: { eq: foreignOwnerId } }, [ownerless]],
    ] as const) {
      const { data } = await graphqlOnEveryPath(gateway, alice.token, filtered, { where });
      expect(data.dttTemplates.nodes).toEqual(left.map((databaseId) => ({ databaseId })));
    }
    const query = '{ dttTemplates { nodes { databaseId isImported viewerCanActivate } } }';
    const { data } = await graphqlOnEveryPath(gateway, alice.token, query);
    for (const { databaseId, ...its } of data.dttTemplates.nodes) {
      const isImported = [imported, ownerless].includes(databaseId);
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
        dttDevices(first: 1) { nodes { sessions(where: { passed: { eq: true } }) { totalCount } all: sessions { totalCount } } }
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
    expect(data.dttDevices.nodes).toEqual([{ sessions: { totalCount: 2 }, all: { totalCount: 3 } }]);
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

const nested = (depth: number): object => (depth === 0 ? {} : { not: nested(depth - 1) });

it.each<[string, object]>([
  ['conditions', { and: Array(25).fill({ passed: { eq: true } }) }],
  ['levels', nested(50)],
  ['items', { databaseId: { in: Array(100).fill(1) } }],
  // An emoji counts as one.
  ['characters', { name: { contains: '😀'.repeat(200), startsWith: '😀'.repeat(200) } }],
  ['joins', { or: Array.from({ length: 6 }, (_, index) => ({ template: { databaseId: { eq: index } } })) }],
])('a filter may have as many %s as are allowed', async (_, where) => {
  const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
  expect((await graphqlOnEveryPath(gateway, alice.token, query, { where })).errors).toBeUndefined();
});

const noText = 'has a character that no text can have: NUL, or half a surrogate pair';
const counted =
  'at most 50 conditions: each comparison, each link, each `not`, and each item of `and` and `or` counts as one';

it.each<[message: string, where: object]>([
  [`where.name.contains ${noText}`, { name: { contains: 'a\0' } }],
  [`where.not.name.in ${noText}`, { not: { name: { in: ['a', '\ud800'] } } }],
  ['where must have at most 100 items in where.databaseId.in', { databaseId: { in: Array(101).fill(1) } }],
  [`where must have ${counted}`, { and: Array(26).fill({ passed: { eq: true } }) }],
  [`where must have ${counted}`, nested(51)],
  ['where.name.startsWith must have at most 200 characters', { name: { startsWith: '😀'.repeat(201) } }],
  [
    'where must join at most 12 tables, and joins 14: put conditions on one linked record under one link',
    { or: Array.from({ length: 7 }, (_, index) => ({ template: { databaseId: { eq: index } } })) },
  ],
  ['where.passed.eq must not be null: isNull asks for records without a value', { passed: { eq: null } }],
  ['where.or[1].name.isNull must not be null', { or: [{}, { name: { isNull: null } }] }],
  ['where.not.createdAt must not be null', { not: { createdAt: null } }],
  ['where.or must not be null', { or: null }],
  ['where.template must not be null: not: { template: {} } asks for records without one', { template: null }],
])(
  'an invalid filter is an error of the argument where, beside the data of other fields: %s',
  async (message, where) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } viewer { username } }',
      { where },
    );
    expect(data).toEqual({ dttSessions: null, viewer: { username: 'alice' } });
    expect(errors).toEqual([
      expect.objectContaining({ message, extensions: { code: 'BAD_USER_INPUT', argument: 'where' } }),
    ]);
  },
);

it('an infinite number is an error of the argument where', async () => {
  // JSON has none, so it is not in a variable.
  const query = '{ dttSessions(where: { template: { targetDepth: { in: [0, 1e999] } } }) { totalCount } }';
  const { errors } = await graphqlOnEveryPath(gateway, alice.token, query);
  expect(errors).toMatchObject([
    {
      message: 'where.template.targetDepth.in must be a finite number',
      extensions: { code: 'BAD_USER_INPUT', argument: 'where' },
    },
  ]);
});
