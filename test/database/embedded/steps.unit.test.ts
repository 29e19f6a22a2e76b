/** Which messages of a client run in one step, and which prepared statements a step needs. */

import { expect, it } from 'vitest';
import { message } from '../../../src/database/embedded/protocol.ts';
import { stepsOf } from '../../../src/database/embedded/steps.ts';

const none = Buffer.alloc(2);
const query = (sql: string) => message('Q', sql);
const parse = (name: string, sql = 'SELECT 1') => message('P', name, sql, none);
const bind = (statement: string) => message('B', 'a portal', statement, none, none, none);
const about = (letter: 'D' | 'C', what: 'S' | 'P', name: string) => message(letter, Buffer.from(what), name);
const sync = message('S');

const nothing = { uses: [], closes: [], mayUseAll: false, isUnnamed: false };
const afterQuery = { ...nothing, closes: [''] };

const cases: readonly [string, Buffer[], object[]][] = [
  [
    'a batch and a query are two steps',
    [bind('one'), sync, query('x')],
    [{ ...nothing, uses: ['one'] }, afterQuery],
  ],
  [
    'the rows of a COPY belong to the step of its query',
    [query('x'), message('d'), message('c'), message('f', '')],
    [afterQuery],
  ],
  [
    'describing and closing portals uses no statements',
    [about('D', 'P', 'one'), about('C', 'P', 'two'), sync],
    [nothing],
  ],
  ['describing a statement uses it', [about('D', 'S', 'one'), sync], [{ ...nothing, uses: ['one'] }]],
  [
    'preparing a statement uses its name, which may exist already',
    [parse('one'), sync],
    [{ ...nothing, uses: ['one'] }],
  ],
  [
    'a statement that is closed and prepared again still exists',
    [about('C', 'S', 'one'), about('C', 'S', 'two'), parse('one'), sync],
    [{ ...nothing, uses: ['one'], closes: ['two'] }],
  ],
  ['the statement without a name is stored', [parse(''), sync], [{ ...nothing, isUnnamed: true }]],
  ['a query closes the statement without a name', [parse(''), query('x')], [afterQuery]],
  ['EXECUTE in SQL may use any statement', [query('EXECUTE one')], [{ ...afterQuery, mayUseAll: true }]],
];

it.each(cases)('%s', (_, messages, expected) => {
  const steps = [...stepsOf(Buffer.concat(messages))];
  expect(Buffer.concat(steps.map((step) => step.messages))).toEqual(Buffer.concat(messages));
  expect(
    steps.map(({ uses, closes, mayUseAll, unnamed }) => ({
      uses: [...uses],
      closes: [...closes],
      mayUseAll,
      isUnnamed: unnamed !== undefined,
    })),
  ).toEqual(expected);
});
