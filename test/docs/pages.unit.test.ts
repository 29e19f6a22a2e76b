/** The links and names in the documentation are right. */

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusOf } from '../../src/errors.ts';
import { variables } from '../support/settings.ts';
import { anchorsOf, blocksOf, pages, proseOf, readPage } from './markdown.ts';

it('README.md and docs/decisions/README.md link to every page', () => {
  const index = readPage('README.md') + readPage('docs/decisions/README.md');
  for (const page of pages.filter((path) => /^docs\/.*(?<!README)\.md$/.test(path)))
    expect(index).toMatch(new RegExp(`[(/]${page.split('/').at(-1)}\\)`));
});

/** What is wrong with the links from a page: those whose file or heading does not exist. */
const problemsOf = (page: string, links: readonly string[]) =>
  links.filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? page : normalize(join(dirname(page), path));
    return !existsSync(target) || (anchor !== undefined && !anchorsOf(readPage(target)).has(anchor));
  });

describe.each(pages)('%s', (page) => {
  const prose = proseOf(readPage(page));

  it('links only to files and headings that exist', () => {
    const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    expect(
      problemsOf(
        page,
        links.filter((link) => !/^https?:/.test(link)),
      ),
    ).toEqual([]);
  });

  it('names only files that exist', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|prisma|ops|\.ci|\.github)\/[\w./-]+)`/g)];
    expect(named.map(([, path = '']) => path).filter((path) => !existsSync(path))).toEqual([]);
  });

  it('names only settings and error codes that exist', () => {
    const known = new Set([...variables, ...Object.keys(statusOf)]);
    const named = [...prose.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name);
    // The changelog also names settings that existed earlier.
    const unknown = named.filter(
      (name) => !known.has(name) && !/^(OTEL_|NODE_ENV$|DOVETAIL_COMMAND$|POSTGRES_URL$)/.test(name),
    );
    expect(page === 'CHANGELOG.md' ? [] : unknown).toEqual([]);
  });

  it('has JSON that a program can read as it is printed', () => {
    for (const { language, text } of blocksOf(readPage(page)))
      if (language === 'json') expect(() => JSON.parse(text)).not.toThrow();
  });
});

it('nothing says to run `npx dovetail`, which outside a clone is a package of somebody else’s', () => {
  const files = execFileSync('git', ['grep', '-lP', 'npx dovetail(?![-\\w])'], { encoding: 'utf8' });
  // They say not to.
  const known = ['CHANGELOG.md', 'docs/operations.md', 'test/docs/pages.unit.test.ts'];
  expect(files.trim().split('\n')).toEqual(known);
});
