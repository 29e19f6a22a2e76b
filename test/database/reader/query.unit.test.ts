/** Only queries of what the models have compile: the compiler tests each line below `@ts-expect-error`. */

import { expect, it } from 'vitest';
import type { SelectQuery } from '../../../src/database/reader/query.ts';
import { selectStatement } from '../../../src/database/reader/statement.ts';

const id = { id: true } as const;

it('a query of columns and relations that the model has compiles', () => {
  const query: SelectQuery<'DttSession'> = {
    select: {
      createdAt: true,
      segments: { select: id, where: { speedMeasured: { gte: 1 } }, orderBy: { id: 'asc' }, take: 3 },
      _count: { select: { segments: { where: { type: 'bounce' } } } },
    },
    where: { OR: [{ owner: { username: 'alice' } }, { segments: { some: { id: { in: [1, 2] } } } }] },
    orderBy: [{ createdAt: { sort: 'desc', nulls: 'last' } }, { id: 'desc' }],
    skip: 2,
  };
  expect(selectStatement('DttSession', query).text).toContain('"DttSession"');
});

/** Each has one invalid name or value, which is also rejected when the statement is written. */
const queries: readonly [string, SelectQuery<'DttSession'>][] = [
  // @ts-expect-error a column that DttSession does not have.
  ['a column', { select: { lastVisited: true } }],
  // @ts-expect-error a column that TrainerSegment does not have.
  ['a column of a relation', { select: { segments: { select: { username: true } } } }],
  // @ts-expect-error to one row, which is read by its id.
  ['a relation to one row', { select: { owner: { select: { id: true } } } }],
  // @ts-expect-error a relation of User.
  ['a count', { select: { _count: { select: { dttDevices: true } } } }],
  // @ts-expect-error a column that DttSession does not have.
  ['a condition', { select: id, where: { username: 'alice' } }],
  // @ts-expect-error a column that User does not have.
  ['a condition on a relation', { select: id, where: { owner: { ownerId: 1 } } }],
  // @ts-expect-error an operator of Prisma's that is not written here.
  ['an operator', { select: id, where: { id: { notIn: [1] } } }],
  // @ts-expect-error a column that DttSession does not have.
  ['an order', { select: id, orderBy: { lastVisited: 'asc' } }],
  // @ts-expect-error a part of Prisma's queries that is not written here.
  ['a part of a query', { select: id, distinct: ['id'] }],
];

it.each(queries)('a query with the wrong name for %s does not compile, and throws an error', (_, query) => {
  expect(() => selectStatement('DttSession', query)).toThrow();
});
