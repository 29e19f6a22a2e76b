import { assertObjectType, graphql, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/context.ts';
import { prepare } from '../../src/schema/prepare.ts';
import { visible } from '../../src/schema/reads.ts';
import { schema } from '../../src/schema/schema.ts';
import { needsOf } from '../../src/schema/selection.ts';

describe('what a field needs of its row', () => {
  it.each(Object.keys(visible))('is known for every field of %s', (name) => {
    const type = assertObjectType(schema.getType(name));
    for (const field of Object.keys(type.getFields())) expect(() => needsOf(type, field)).not.toThrow();
  });

  it('is asked of no field that does not say it', () => {
    const pageInfo = assertObjectType(schema.getType('PageInfo'));
    expect(() => needsOf(pageInfo, 'nothing')).toThrow(
      'PageInfo.nothing does not say what it needs of its row',
    );
  });
});

describe('a read', () => {
  /** The `select` of the one query that the operation sends, interpreted and compiled. */
  async function selectsOf(source: string): Promise<unknown[]> {
    const selects: unknown[] = [];
    const findMany = async (model: string, { select }: { select: unknown }) => {
      // The imports are looked up for the templates that they make visible.
      if (model !== 'DttTemplateImport') selects.push(select);
      return [];
    };
    // What the resolver of a list uses of a context, and no more.
    const context = {
      viewer: { id: 7, tokenId: 1 },
      sql: { findMany },
      loaders: { once: (_name: string, read: () => unknown) => read() },
    } as unknown as Context;
    expect((await graphql({ schema, source, contextValue: context })).errors).toBeUndefined();
    await prepare(parse(source))?.run({}, context);
    return selects;
  }

  it.each([
    ['columns', '{ dttSessions { nodes { name databaseId } } }', { id: true, name: true, createdAt: true }],
    [
      'the column of a link',
      '{ dttSessions { edges { node { trainer { serialNumber } } } } }',
      { id: true, createdAt: true, trainerId: true },
    ],
    [
      'parts, in their order',
      '{ dttSessions { nodes { ...S } edges { node { passed } } } } fragment S on DttSession { ... on Node { id } segments { points } }',
      {
        id: true,
        createdAt: true,
        passed: true,
        segments: { orderBy: [{ order: 'asc' }, { id: 'asc' }], select: { id: true, points: true } },
      },
    ],
    [
      'what either of two equal fields asks for',
      '{ dttSessions { nodes { name } nodes { passed } } }',
      { id: true, createdAt: true, name: true, passed: true },
    ],
    [
      'what either of two fragments on one connection asks for',
      `{ dttSessions { ...A ...B } } fragment A on DttSessionConnection { nodes { name } }
       fragment B on DttSessionConnection { nodes { passed } edges { node { bubbleId } } }`,
      { id: true, createdAt: true, name: true, passed: true, bubbleId: true },
    ],
    [
      'what depends on the viewer',
      '{ dttTemplates { nodes { isActive } } }',
      { id: true, createdDate: true, activeOf: { where: { id: 7 }, select: { id: true }, take: 1 } },
    ],
  ])('selects %s, and nothing else', async (_, source, select) => {
    expect(await selectsOf(source)).toEqual([select, select]);
  });
});
