/** A query that is not supported is an error when its statement is written, and never means something else. */

import { expect, it } from 'vitest';
import { type SelectQuery, selectStatement } from '../../../src/database/reader/statement.ts';

const select = { id: true };

it.each<[string, SelectQuery]>([
  ['a column that does not exist', { select: { lastVisited: true } }],
  ['an empty selection', { select: {} }],
  ['a column that is not selected', { select: { bubbleId: false } }],
  ['a column of a relation that does not exist', { select: { segments: { select: { username: true } } } }],
  ['a relation to one row, which is read by its id', { select: { owner: { select } } }],
  ['a count of something that does not exist', { select: { _count: { select: { dttDevices: true } } } }],
  [
    'a count with more than a condition',
    { select: { _count: { select: { segments: { where: {}, take: 1 } } } } },
  ],
  ['a condition on a column that does not exist', { select, where: { username: 'alice' } }],
  ['bytes', { select, where: { owner: { tokens: { some: { digest: Buffer.of(1) } } } } }],
  ['an operator', { select, where: { id: { notIn: [1] } } }],
  ['a comparison with nothing', { select, where: { id: {} } }],
  ['a comparison with undefined', { select, where: { id: { lt: undefined } } }],
  ['a comparison with null', { select, where: { createdAt: { lt: null } } }],
  ['null in a list', { select, where: { bubbleId: { in: ['x', null] } } }],
  ['a pattern that regards case', { select, where: { bubbleId: { contains: 'a' } } }],
  ['equality without regard to case', { select, where: { bubbleId: { equals: 'a', mode: 'insensitive' } } }],
  ['NUL in text', { select, where: { bubbleId: 'a\0' } }],
  ['half a character', { select, where: { bubbleId: { in: ['\udc00'] } } }],
  ['an invalid date', { select, where: { createdAt: new Date(Number.NaN) } }],
  ['a conjunction of nothing', { select, where: { AND: [] } }],
  ['a disjunction of nothing', { select, where: { OR: [] } }],
  ['a condition on every row', { select, where: { segments: { every: { id: 1 } } } }],
  ['a condition on some rows and on none', { select, where: { segments: { some: {}, none: {} } } }],
  ['an order by a relation', { select, orderBy: { owner: 'asc' } }],
])('is an error: %s', (_, query) => {
  expect(() => selectStatement('DttSession', query)).toThrow();
});
