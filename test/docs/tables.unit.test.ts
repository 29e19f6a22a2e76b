/** The tables of the documentation have the same content as the code. */

import { expect, it } from 'vitest';
import { statusOf } from '../../src/errors.ts';
import { routes } from '../../src/rest/routes.ts';
import { settings } from '../support/settings.ts';
import { readPage, rowsOf } from './markdown.ts';

it('docs/configuration.md lists each setting once, with its description and default', () => {
  const expected = Object.entries(settings).map(([name, { description, takes, schema }]) => {
    const { data } = schema.safeParse(undefined);
    return `| \`${name}\` | ${description} | ${takes} | ${data === undefined ? '' : `\`${data}\``} |`;
  });
  const rows = rowsOf(readPage('docs/configuration.md'), /^[A-Z_]+$/).map(({ row }) => row);
  expect(rows.toSorted()).toEqual(expected.toSorted());
});

it('docs/rest.md lists the routes in the order of the operations', () => {
  const expected = routes.map(({ method, path, missing = '', summary, description, aliasOf }) => {
    const does = aliasOf === undefined ? `${summary} ${description}` : summary;
    return `| \`${method} ${path}\` | ${does} | ${missing} |`;
  });
  const rows = rowsOf(readPage('docs/rest.md'), /^(GET|POST) \//).map(({ row }) => row);
  expect(rows).toEqual(expected);
});

it('docs/errors.md lists each error code with its status, and has a section with an example for it', () => {
  const page = readPage('docs/errors.md');
  const rows = rowsOf(page, /^[A-Z_]+$/).map(({ key, row }) => [key, Number(row.split('|')[2])]);
  expect(rows).toEqual(Object.entries(statusOf));
  for (const code of Object.keys(statusOf))
    expect(page).toMatch(new RegExp(`\\n## ${code}\\n[^#]*\`\`\`sh\\n`));
});
