/** The screenshots of the console in the documentation: each view in each size and colour scheme, in small files. */

import { readdirSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { views } from '../browser/views.ts';

const folder = 'docs/images/console';
const maxBytes = 1_500_000;

it('show every view, wide and narrow, light and dark, in at most 1.5 MB', () => {
  const expected = ['sign-in', ...Object.keys(views)].flatMap((name) =>
    ['wide', 'narrow'].flatMap((size) => ['day', 'night'].map((time) => `${name}-${size}-${time}.webp`)),
  );
  const found = readdirSync(folder);
  expect(found.toSorted()).toEqual(expected.toSorted());
  const total = found.reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0);
  expect(total).toBeLessThanOrEqual(maxBytes);
});
