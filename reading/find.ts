/** The search of the guides: the build makes its index, and the page opens it. */

import MiniSearch, { type Options } from 'minisearch';

/** A heading of a guide, with what is below it. */
export interface Section {
  /** Such as `/guides/rest#paging`. */
  readonly path: string;
  /** The title of the guide. */
  readonly page: string;
  readonly title: string;
  /** What its tables describe, such as settings: the first column. */
  readonly names: string;
  /** Its sentences, without its examples. */
  readonly text: string;
  readonly code: string;
}

/** A section as the search shows it, with the part of its text that has the words. */
export type Found = Pick<Section, 'path' | 'page' | 'title'> & { readonly excerpt: string };

/** Words that say nothing about what is looked for. */
const common = new Set(
  'a an and are as at be by can do does for from how i in is it me my of on or that the there this to what when where which who why will with you your'.split(
    ' ',
  ),
);

/** Without the ending of a plural or a participle, so that "tokens" and "token" are one word. */
function stem(word: string): string | null {
  const lower = word.toLowerCase();
  if (common.has(lower)) return null;
  if (lower === 'pagination') return stem('paging');
  return lower.length > 4 ? lower.replace(/(?<=\w{3})(ies|ing|ed|es|s|e|y)$/, '') : lower.replace(/s$/, '');
}

/** A guide as a whole comes before its sections, and what explains Dovetail to its developers comes last. */
function weightOf(path: string): number {
  if (/^\/guides\/(decisions|changelog|contributing|benchmarks)\b/.test(path)) return 0.4;
  return path.includes('#') ? 1 : 1.2;
}

const options: Options = {
  fields: ['title', 'page', 'names', 'text', 'code'],
  storeFields: ['path', 'page', 'title', 'text'],
  idField: 'path',
  processTerm: stem,
  searchOptions: {
    boost: { title: 4, page: 2, names: 0.7, code: 0.5 },
    boostDocument: weightOf,
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  },
};

/** The index of the sections, as JSON. */
export function writeIndex(sections: readonly Section[]): string {
  const index = new MiniSearch<Section>(options);
  index.addAll(sections);
  return JSON.stringify(index);
}

/** The text from the sentence on that has the most of the terms. */
function excerptOf(text: string, terms: readonly string[]): string {
  const sentences = text.trim().split(/(?<=[.:?!])\s+|\n/);
  const counts = sentences.map((sentence) => {
    const words = new Set(sentence.split(/[^\p{L}\p{N}]+/u).map(stem));
    return terms.filter((term) => words.has(term)).length;
  });
  const line = sentences
    .slice(counts.indexOf(Math.max(...counts)))
    .join(' ')
    .replace(/\s+/g, ' ');
  return line.length > 160 ? line.replace(/^(.{0,160})(?!\S).*/, '$1 …') : line;
}

/** How many results are shown. */
const mostFound = 20;

/** @returns a function that gives the best sections that have any of the words, the best first. */
export function openIndex(json: string): (question: string) => Found[] {
  const index = MiniSearch.loadJSON(json, options);
  return (question) =>
    index
      .search(question)
      .slice(0, mostFound)
      .map(({ path, page, title, text, terms }) => ({ path, page, title, excerpt: excerptOf(text, terms) }));
}
