/** What a query may not say is an error when its statement is written. */

import { expect, it } from 'vitest';
import type { SelectQuery } from '../../../src/database/reader/query.ts';
import { selectStatement } from '../../../src/database/reader/statement.ts';

const select = { id: true };

it.each<[string, SelectQuery]>([
  ['a column', { select: { lastVisited: true } }],
  ['a column of a relation', { select: { segments: { select: { username: true } } } }],
  ['a relation to one row, which is read by its id', { select: { owner: { select } } }],
  ['a count', { select: { _count: { select: { dttDevices: true } } } }],
  ['a condition', { select, where: { username: 'alice' } }],
  ['a condition on a relation', { select, where: { owner: { ownerId: 1 } } }],
  ['an operator', { select, where: { id: { notIn: [1] } } }],
  ['an order', { select, orderBy: { lastVisited: 'asc' } }],
  ['a part of a query', { select, ...{ distinct: ['id'] } }],
])('a query with the wrong name for %s throws an error', (_, query) => {
  expect(() => selectStatement('DttSession', query)).toThrow();
});
