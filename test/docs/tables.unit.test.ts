/** The tables of the README are those of the code. */

import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { settings } from '../../src/config.ts';
import { routes } from '../../src/rest/routes.ts';

const settingsTable = [
  '| variable | what it is for | default |',
  '|---|---|---|',
  ...Object.entries(settings).map(([name, { description, schema }]) => {
    const { data } = schema.safeParse(undefined);
    return `| \`${name}\` | ${description} | ${data === undefined ? '' : `\`${data}\``} |`;
  }),
].join('\n');

const routesTable = [
  '| route | answer | 404 |',
  '|---|---|---|',
  ...routes.map(
    ({ method, path, missing = '', description }) =>
      `| \`${method} ${path}\` | ${description} | ${missing} |`,
  ),
].join('\n');

it.each([
  ['settings', settingsTable],
  ['routes', routesTable],
])('lists the %s', async (name, table) => {
  const readme = await readFile('README.md', 'utf8');
  const inside = between(`<!-- ${name} -->`, `<!-- /${name} -->`, readme);
  expect(inside.trim()).toBe(table);
});

function between(start: string, end: string, text: string): string {
  const from = text.indexOf(start) + start.length;
  const to = text.indexOf(end);
  expect(to).toBeGreaterThan(from);
  return text.slice(from, to);
}
