/** Reads the Markdown pages of the repository for the tests. */

import { readdirSync, readFileSync } from 'node:fs';
import { anchorOf } from '../../reading/guides.ts';
import type { Metric } from '../../src/extensionPoints.ts';

/** Every page, by its path from the root. */
export const pages: readonly string[] = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'test/bench/README.md',
  ...['docs', '.github'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
].sort();

export const readPage = (page: string): string => readFileSync(page, 'utf8');

export interface Block {
  readonly language: string;
  readonly text: string;
  /** The line of its opening fence, counted from one. */
  readonly line: number;
}

/** The fenced blocks of a page. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  for (const match of text.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    const [, language = '', content = ''] = match;
    blocks.push({ language, text: content, line: text.slice(0, match.index).split('\n').length });
  }
  return blocks;
}

/** The text of a page without its fenced blocks. */
export const proseOf = (text: string): string => text.replace(/^```.*?^```$/gms, '');

/** The anchors of a page's headings. */
export const anchorsOf = (text: string): Set<string> =>
  new Set([...proseOf(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)));

/** The rows of a page's tables whose first cell is code that matches the pattern. */
export function rowsOf(text: string, key: RegExp): { key: string; row: string }[] {
  return text.split('\n').flatMap((row) => {
    const [, name = ''] = /^\| `([^`]+)` \|/.exec(row) ?? [];
    return key.test(name) ? [{ key: name, row }] : [];
  });
}

/** The metrics that a page lists, with the type that it gives to each. */
export const metricsIn = (page: string) =>
  rowsOf(readPage(page), /^dovetail_/).map(({ key: name, row }) => {
    const [, , kind, , help] = row.split('|').map((cell) => cell.trim());
    return { name, kind, help };
  });

/** The metrics as a page lists them. */
export const rowsOfMetrics = (metrics: readonly Metric[]) =>
  metrics.map(({ name, help }) => ({
    name: `dovetail_${name}`,
    kind: name.endsWith('_total') ? 'counter' : 'gauge',
    help,
  }));
