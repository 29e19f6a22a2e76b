/** Which documents are cached and may be compiled, and the operations that are prepared from them. */

import { expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments } from '../../src/graphql/documents.ts';
import { createPersistedOperations } from '../../src/graphql/persisted.ts';

it('a document is checked once, and so is each of its operations, unless it comes from an anonymous client', () => {
  const documents = createDocuments(readConfig({}));
  const viewer = '{ viewer { username } }';
  for (const text of [viewer, '{ nobody }', '{']) expect(documents.read(text)).toBe(documents.read(text));
  const read = documents.read(viewer);
  if ('errors' in read) throw read.errors[0];
  expect(read.operation(undefined)).toBe(read.operation(undefined));
  expect(read.operation('Nobody')).toBeUndefined();
  const text = '{ __typename }';
  expect(documents.readAnonymous(text)).not.toBe(documents.readAnonymous(text));
  expect(documents.readAnonymous(viewer)).toBeUndefined();
});

const four = (below: string) =>
  ['a', 'b', 'c', 'd'].map((alias) => `${alias}: activeDttTemplate { owner { ${below} } }`).join(' ');
/** 978 fields, and this many more. */
const large = (more: number) =>
  `{ a: viewer { ...A } b: viewer { ...A } ${'__typename '.repeat(more)} } fragment A on User { ${four('...B')} }
   fragment B on User { ${four('...C')} } fragment C on User { ${four('id rank league username databaseId')} }`;

it.each([
  ['of each field', '{ viewer { username __typename } }', 3],
  ['of each type that has a field of an interface', '{ devices { nodes { id } } }', 5],
  ['of each operation', 'query A { viewer { id } } query B { viewer { id } }', 4],
  ['for each value of a condition', 'query ($a: Boolean!) { viewer { id rank @skip(if: $a) } }', 6],
  ['of 1000 fields', large(22), 1_000],
  ['of no field, when there are more', large(23), 0],
])('a document may take compiled code %s', (_, text, compilable) => {
  expect(createDocuments(readConfig({})).read(text)).toMatchObject({ compilable });
  expect(createDocuments(readConfig({}), undefined, false).read(text)).toMatchObject({ compilable: 0 });
});

it('documents and registered queries take 64 MiB each, after which the oldest are forgotten', () => {
  const documents = createDocuments(readConfig({}));
  const { register, find } = createPersistedOperations(readConfig({}), { operations: new Map() });
  const extensionsOf = (index: number) => ({ extensions: { persistedQuery: { sha256Hash: `${index}` } } });
  // Estimated, beside the code of a thousand fields, at 200 bytes and two bytes for each character.
  const texts = Array.from({ length: 34 }, (_, index) => `${large(22)} #${index}`.padEnd(5_000, 'x'));
  for (const [index, text] of texts.entries()) {
    documents.read(text);
    register({ query: text.padEnd(1_000_000, 'x'), ...extensionsOf(index) }, { id: 1 });
  }
  expect(texts.map(documents.has)).toEqual(texts.map((_, index) => index > 0));
  const found = texts.map((_, index) => typeof find(extensionsOf(index), { id: 1 }) === 'string');
  expect(found).toEqual(texts.map((_, index) => index > 0));
});
