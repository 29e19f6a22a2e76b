/** The sizes in docs/scaling.md are calculated from the measurements on the same page. */

import { expect, it } from 'vitest';
import { type Measured, sizeOf } from '../bench/sizingModel.ts';
import { labels, printSizes } from '../bench/sizingTables.ts';
import { readPage } from './markdown.ts';

/** The rows of the page's tables, each by its first cell. */
const rows = new Map(
  [...readPage('docs/scaling.md').matchAll(/^\| ([^|]+?) \|(.*)\|$/gm)].map(([, label = '', cells = '']) => [
    label,
    cells.split('|').map((cell) => cell.trim()),
  ]),
);

it('shows for each number of users the sizes that follow from the measurements', () => {
  const figures = Object.entries(labels).map(([key, label]) => {
    const [cell = ''] = rows.get(label) ?? [];
    return [key, Number(cell.replaceAll(',', ''))];
  });
  const measured = Object.fromEntries(figures) as Measured; // has a figure for each label
  expect(figures.filter(([, value]) => !(Number(value) > 0))).toEqual([]);
  const [head = [], ...expected] = printSizes([1e4, 1e6, 1e8].map((users) => sizeOf(users, measured))).rows;
  expect(rows.get('users')).toEqual(head.slice(1));
  for (const [label = '', ...cells] of expected) expect([label, rows.get(label)]).toEqual([label, cells]);
});
