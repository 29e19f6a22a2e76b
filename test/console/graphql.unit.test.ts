/** Documents of the console: each goes to the gateway whole, with the fragments that it spreads, each once. */

import { expect, test } from 'vitest';
import { textOf, graphql as typed } from '../../console/src/api/graphql.ts';

// The types are those of the console's own documents, of which these are none.
const graphql = typed as unknown as (text: string) => Parameters<typeof textOf>[0];

graphql('fragment SegmentPart on DttTemplateSegment { id type }');
graphql('fragment ProgramPart on DttTemplate { id segments { ...SegmentPart } }');

const count = (text: string, part: string) => text.split(part).length - 1;

test('A document has the fragments that it spreads, and those that they spread, once', () => {
  const text = textOf(
    graphql('query A { a: activeDttTemplate { ...ProgramPart segments { ...SegmentPart } } }'),
  );
  expect(count(text, 'fragment ProgramPart on DttTemplate')).toBe(1);
  expect(count(text, 'fragment SegmentPart on DttTemplateSegment')).toBe(1);
});

test('A document without fragments has none, and an inline one is none', () => {
  const text = textOf(graphql('query B { node(id: "1") { id ... on DttTemplate { name } } }'));
  expect(text).not.toContain('fragment ');
  expect(text).not.toContain('__typename');
});

test('A fragment that was not written yet is an error that names it', () => {
  expect(() => graphql('query C { viewer { ...Later } }')).toThrow('There is no fragment Later yet.');
});
