/** The links and names in the documentation are right, and its words are those of the field. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { settings } from '../../src/config/config.ts';
import { statusOf } from '../../src/errors.ts';
import { anchorsOf, blocksOf, pages, proseOf, readPage } from './markdown.ts';

it('README.md has at most 120 lines', () => {
  expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120);
});

it('README.md and docs/decisions/README.md link to every page', () => {
  const index = readPage('README.md') + readPage('docs/decisions/README.md');
  for (const page of pages.filter((path) => /^docs\/.*(?<!README)\.md$/.test(path))) {
    expect(index).toMatch(new RegExp(`[(/]${page.split('/').at(-1)}\\)`));
  }
});

/** What is wrong with a link from a page, or undefined if its target exists. */
function problemOf(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(target)) return `${link}: there is no ${target}`;
  if (anchor === undefined) return undefined;
  return anchorsOf(readPage(target)).has(anchor) ? undefined : `${link}: ${target} has no such heading`;
}

describe.each(pages)('%s', (page) => {
  const text = readPage(page);
  const prose = proseOf(text);

  it('links only to files and headings that exist', () => {
    const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const internal = links.filter((link) => !/^https?:/.test(link));
    expect(internal.map((link) => problemOf(page, link)).filter((problem) => problem !== undefined)).toEqual(
      [],
    );
  });

  it('names only files that exist', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|prisma|ops|\.ci|\.github)\/[\w./-]+)`/g)];
    expect(named.map(([, path = '']) => path).filter((path) => !existsSync(path))).toEqual([]);
  });

  it('names only settings and error codes that exist', () => {
    const known = new Set([...Object.keys(settings), ...Object.keys(statusOf)]);
    const named = [...prose.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name);
    // The changelog also names settings that existed earlier.
    const unknown = named.filter((name) => !known.has(name) && !/^(OTEL_|NODE_ENV$)/.test(name));
    expect(page === 'CHANGELOG.md' ? [] : unknown).toEqual([]);
  });

  it('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    const named = [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('uses the terms of the field, and names no path of a particular machine', () => {
    // Code may contain an earlier name of something.
    const found = prose
      .replace(/`[^`\n]*`/g, '')
      .match(
        /\b(doors?|answers?|kept|gates?|admission|strangers?|express lane|refusals?|patience)\b|\/tmp\/|\/home\/|\/work\//gi,
      );
    expect(found ?? []).toEqual([]);
  });

  it('has fenced blocks only in languages that are run, drawn, or shown as they are', () => {
    const languages = blocksOf(text).map(({ language }) => language);
    expect(
      languages.filter(
        (language) =>
          !['sh', 'js', 'ts', 'json', 'html', 'sql', 'graphql', 'mermaid', 'nginx', 'text'].includes(
            language,
          ),
      ),
    ).toEqual([]);
  });
});

it('comments in the code refer only to pages and headings that exist', () => {
  const files = ['src', 'test', '.ci'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(
        (name) =>
          /\.(ts|js|mjs|graphql|sql)$/.test(name) && !/(^|\/)(node_modules|dist|generated)\//.test(name),
      )
      .map((name) => join(folder, name)),
  );
  const problems = files.flatMap((file) => {
    const cited = readFileSync(file, 'utf8').match(/\bdocs\/[\w/-]+\.md(#[\w-]+)?/g) ?? [];
    return cited
      .flatMap((link) => problemOf('README.md', link) ?? [])
      .map((problem) => `${file}: ${problem}`);
  });
  expect(files.length).toBeGreaterThan(100);
  expect(problems).toEqual([]);
});
