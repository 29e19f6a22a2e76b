/** What of a guest's messages runs in one step, and which prepared statements it needs. */

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
    'a batch and a query are two',
    [bind('one'), sync, query('x')],
    [{ ...nothing, uses: ['one'] }, afterQuery],
  ],
  [
    'the rows of a COPY belong to its query',
    [query('x'), message('d'), message('c'), message('f', '')],
    [afterQuery],
  ],
  ['a portal is no statement', [about('D', 'P', 'one'), about('C', 'P', 'two'), sync], [nothing]],
  ['to describe a statement is to use it', [about('D', 'S', 'one'), sync], [{ ...nothing, uses: ['one'] }]],
  ['what is prepared may be there already', [parse('one'), sync], [{ ...nothing, uses: ['one'] }]],
  [
    'a statement that is closed and prepared again is there',
    [about('C', 'S', 'one'), about('C', 'S', 'two'), parse('one'), sync],
    [{ ...nothing, uses: ['one'], closes: ['two'] }],
  ],
  ['the statement without a name is remembered', [parse(''), sync], [{ ...nothing, isUnnamed: true }]],
  ['a query does away with it', [parse(''), query('x')], [afterQuery]],
  ['SQL may use any', [query('EXECUTE one')], [{ ...afterQuery, mayUseAll: true }]],
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
