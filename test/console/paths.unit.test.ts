/** Where the links of the console lead. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('no link begins with a slash, which would leave the path of a proxy', () => {
  const files = readdirSync('console/src', { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => /(?<!^paths)\.tsx?$/.test(name));
  expect(sources.length).toBeGreaterThan(50);
  for (const name of sources)
    expect([name, readFileSync(`console/src/${name}`, 'utf8').match(/["'`]\/(?!\/)[^"'` ]*["'`]/g)]).toEqual([
      name,
      null,
    ]);
});
