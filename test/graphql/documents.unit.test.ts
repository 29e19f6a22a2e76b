/** Which documents are cached and may be compiled, and the operations that are prepared from them. */

import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments } from '../../src/graphql/documents.ts';

const viewer = '{ viewer { username } }';

/** How many fields of compiled code a document may take. */
function compilableIn(text: string): number {
  const read = createDocuments(readConfig({})).read(text);
  if ('errors' in read) throw read.errors[0];
  return read.compilable;
}

describe('a document', () => {
  it('is checked once, and so is each of its operations, unless it comes from an anonymous client', () => {
    const documents = createDocuments(readConfig({}));
    for (const text of [viewer, '{ nobody }', '{']) expect(documents.read(text)).toBe(documents.read(text));
    const read = documents.read(viewer);
    if ('errors' in read) throw read.errors[0];
    expect(read.operation(undefined)).toBe(read.operation(undefined));
    expect(read.operation('Nobody')).toBeUndefined();
    const text = '{ __typename }';
    expect(documents.readAnonymous(text)).not.toBe(documents.readAnonymous(text));
    expect(documents.readAnonymous(viewer)).toBeUndefined();
  });

  it('is not compiled when it has so many fields that compiling it would take long', () => {
    const four = (below: string) =>
      ['a', 'b', 'c', 'd'].map((alias) => `${alias}: activeDttTemplate { owner { ${below} } }`).join(' ');
    const small = `{ viewer { ...A } } fragment A on User { ${four('...B')} } fragment B on User { ${four('id')} }`;
    const large = `{ viewer { ...A } } fragment A on User { ${four('...B')} } fragment B on User { ${four('...C')} }
      fragment C on User { ${four('...D')} } fragment D on User { ${four('...E')} } fragment E on User { ${four('id')} }`;
    expect(compilableIn(small)).toBeGreaterThan(0);
    expect(compilableIn(large)).toBe(0);
  });
});
