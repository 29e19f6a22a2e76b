/** The search of the guides: the build makes its index, and the page opens it. */

import MiniSearch, { type Options } from 'minisearch';

/** A heading of a guide, with what is below it. */
export interface Section {
  /** Such as `/guides/rest#paging`. */
  readonly path: string;
  /** The title of the guide. */
  readonly page: string;
  readonly title: string;
  /** Its sentences, without its examples. */
  readonly text: string;
  readonly code: string;
}

/** A section as the search shows it, with the beginning of its text. */
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
  return lower.length > 4 ? lower.replace(/(?<=\w{3})(ies|ing|ed|es|s|e|y)$/, '') : lower.replace(/s$/, '');
}

const options: Options = {
  fields: ['title', 'page', 'text', 'code'],
  storeFields: ['path', 'page', 'title', 'excerpt'],
  idField: 'path',
  processTerm: stem,
  searchOptions: {
    boost: { title: 4, page: 2, code: 0.5 },
    prefix: (term) => term.length > 2,
    fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  },
};

/** The index of the sections, as JSON. */
export function writeIndex(sections: readonly Section[]): string {
  const index = new MiniSearch<Section>(options);
  index.addAll(sections.map((section) => ({ ...section, excerpt: beginningOf(section.text) })));
  return JSON.stringify(index);
}

function beginningOf(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 160 ? line.replace(/^(.{0,160})(?!\S).*/, '$1 …') : line;
}

/** @returns a function that gives the sections that have any of the words, the best first. */
export function openIndex(json: string): (question: string) => Found[] {
  const index = MiniSearch.loadJSON(json, options);
  return (question) =>
    index.search(question).map(({ path, page, title, excerpt }) => ({ path, page, title, excerpt }));
}
