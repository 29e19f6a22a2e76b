/** The documents lead where they say, and speak the words of the field. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { settings } from '../../src/config.ts';
import { statusOf } from '../../src/errors.ts';
import { anchorsOf, blocksOf, pages, proseOf, readPage } from './markdown.ts';

it('has a front page of at most 120 lines', () => {
  expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(120);
});

it('has an index that leads to every page', () => {
  const index = readPage('docs/README.md') + readPage('docs/decisions/README.md');
  for (const page of pages.filter((path) => /^docs\/.*(?<!README)\.md$/.test(path))) {
    expect(index).toContain(`(${page.split('/').at(-1)})`);
  }
});

/** What is wrong with a link from a page: nothing, or why it leads nowhere. */
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

  it('has links that lead somewhere', () => {
    const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const internal = links.filter((link) => !/^https?:/.test(link));
    expect(internal.map((link) => problemOf(page, link)).filter((problem) => problem !== undefined)).toEqual(
      [],
    );
  });

  it('names files that are there', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|prisma|ops|\.ci|\.github)\/[\w./-]+)`/g)];
    expect(named.map(([, path = '']) => path).filter((path) => !existsSync(path))).toEqual([]);
  });

  it('names settings and codes of errors that there are', () => {
    const known = new Set([...Object.keys(settings), ...Object.keys(statusOf)]);
    const named = [...prose.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name);
    // A changelog names what there was.
    const unknown = named.filter((name) => !known.has(name) && !/^(OTEL_|NODE_ENV$)/.test(name));
    expect(page === 'CHANGELOG.md' ? [] : unknown).toEqual([]);
  });

  it('names scripts of the package that there are', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    const named = [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it('speaks the words of the field, and of no machine in particular', () => {
    // In code there may be a name that something had once.
    const found = prose
      .replace(/`[^`\n]*`/g, '')
      .match(
        /\b(doors?|answers?|kept|gates?|admission|strangers?|express lane|refusals?|patience)\b|\/tmp\/|\/home\/|\/work\//gi,
      );
    expect(found ?? []).toEqual([]);
  });

  it('shows nothing but in languages that are run, drawn, or shown as they are', () => {
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

it('is cited by comments that lead somewhere', () => {
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
