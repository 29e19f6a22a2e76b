/** The documents that the console sends: each contains the fragments that it spreads, each fragment once. */

import { expect, test } from 'vitest';
import { textOf, graphql as typed } from '../../console/src/api/graphql.ts';

// Its types are for the console's own documents only, and these are others.
const graphql = typed as unknown as (text: string) => Parameters<typeof textOf>[0];

graphql('fragment SegmentPart on DttTemplateSegment { id type }');
graphql('fragment ProgramPart on DttTemplate { id segments { ...SegmentPart } }');

const count = (text: string, part: string) => text.split(part).length - 1;

test('A document contains every fragment that it spreads, directly or through another fragment, once', () => {
  const text = textOf(
    graphql('query A { a: activeDttTemplate { ...ProgramPart segments { ...SegmentPart } } }'),
  );
  expect(count(text, 'fragment ProgramPart on DttTemplate')).toBe(1);
  expect(count(text, 'fragment SegmentPart on DttTemplateSegment')).toBe(1);
});

test('A document that spreads an undefined fragment is an error that names the fragment', () => {
  expect(() => graphql('query C { viewer { ...Later } }')).toThrow('There is no fragment Later yet.');
});
