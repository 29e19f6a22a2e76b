/** Which documents are cached and may be compiled, and the operations that are prepared from them. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments } from '../../src/graphql/documents.ts';
import { messagesOf, preparing } from '../support/execution.ts';

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

  it('is checked for complexity and prepared for each of its operations with their variables', () => {
    const prepare = preparing({ MAX_COMPLEXITY: '50' });
    const text = `query Small { viewer { username } } mutation Change { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }
      query Sized($n: Int) { dttDevices(first: $n) { nodes { id } } }`;
    const found = (operationName: string, n: number) => {
      const prepared = prepare(text, { operationName, variables: { n } });
      return 'errors' in prepared ? messagesOf(prepared) : prepared.label;
    };
    expect(found('Small', 49)).toBe('query viewer');
    expect(found('Change', 49)).toBe('mutation activateTemplate');
    expect(found('Sized', 48)).toBe('query dttDevices');
    expect(found('Sized', 49)).toEqual(['The operation has a complexity of 51; at most 50 is allowed']);
    expect(found('Nobody', 49)).toEqual([
      'There is no operation Nobody: the document has Small, Change, Sized',
    ]);
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

  it('takes no more memory than is counted for it when it is invalid', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const documents = createDocuments(readConfig({}));
    const readInvalid = (from: number, count: number) => {
      for (let index = from; index < from + count; index++)
        expect(documents.read(`{ missing${index} }`)).toHaveProperty('errors');
      collect();
      return process.memoryUsage().heapUsed;
    };
    const count = 500;
    const before = readInvalid(0, count);
    const text = '{ missing000 }';
    expect((readInvalid(count, count) - before) / count).toBeLessThan(2 * (2_000 + 200 * text.length));
  });
});
