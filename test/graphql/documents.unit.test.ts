/** Which documents are cached, and the operations that are prepared from them. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments } from '../../src/graphql/documents.ts';

const viewer = '{ viewer { username } }';

describe('a document', () => {
  it('is prepared after it was read, and only once', () => {
    const documents = createDocuments(readConfig({}));
    expect(documents.prepared(viewer, undefined, {})).toBeUndefined();
    documents.read(viewer);
    const operation = documents.prepared(viewer, undefined, {});
    expect(operation?.type).toBe('query');
    expect(documents.prepared(viewer, undefined, {})).toBe(operation);
    expect(documents.prepared(viewer, 'Nobody', {})).toBeUndefined();
  });

  it('is checked for complexity and prepared for each of its operations with their variables', () => {
    const documents = createDocuments(readConfig({ MAX_COMPLEXITY: '50' }));
    const text = `query Small { viewer { username } } mutation Change { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }
      query Sized($n: Int) { dttDevices(first: $n) { nodes { id } } }`;
    const document = documents.read(text);
    const isTooComplex = (name: string, n: number) => documents.tooComplex(document, name, { n })?.message;
    const message = 'The operation has a complexity of 51; at most 50 is allowed';
    expect(isTooComplex('Sized', 48)).toBeUndefined();
    expect(isTooComplex('Sized', 49)).toBe(message);
    expect(isTooComplex('Small', 49)).toBeUndefined();
    expect(isTooComplex('Nobody', 49)).toBeUndefined();
    const label = (name: string, n: number) => documents.prepared(text, name, { n })?.label;
    expect(label('Small', 49)).toBe('query viewer');
    expect(label('Change', 49)).toBe('mutation activateTemplate');
    expect(label('Sized', 48)).toBe('query dttDevices');
    expect(label('Sized', 49)).toBeUndefined();
  });

  it('is not prepared when it is invalid', () => {
    const documents = createDocuments(readConfig({}));
    for (const text of ['{', '{ nobody }', `{ ${'viewer { id } '.repeat(400)} }`]) {
      expect(() => documents.read(text)).toThrow(AggregateError);
      expect(documents.prepared(text, undefined, {})).toBeUndefined();
    }
  });

  it('is not prepared when it was read for an anonymous client', () => {
    const documents = createDocuments(readConfig({}));
    documents.readAnonymous('{ __typename }');
    expect(documents.prepared('{ __typename }', undefined, {})).toBeUndefined();
  });

  it('is not prepared when it has so many fields that compiling it would take long', () => {
    const documents = createDocuments(readConfig({}));
    const four = (below: string) =>
      ['a', 'b', 'c', 'd'].map((alias) => `${alias}: activeDttTemplate { owner { ${below} } }`).join(' ');
    const small = `{ viewer { ...A } } fragment A on User { ${four('...B')} } fragment B on User { ${four('id')} }`;
    const large = `{ viewer { ...A } } fragment A on User { ${four('...B')} } fragment B on User { ${four('...C')} }
      fragment C on User { ${four('...D')} } fragment D on User { ${four('...E')} } fragment E on User { ${four('id')} }`;
    for (const document of [small, large]) documents.read(document);
    expect(documents.prepared(small, undefined, {})).toBeDefined();
    expect(documents.prepared(large, undefined, {})).toBeUndefined();
  });

  it('is not prepared when it has so many fields because an interface has several types', () => {
    const documents = createDocuments(readConfig({}));
    const nodes = Array.from({ length: 30 }, (_, index) => `n${index}: node(id: "x") { ...F }`).join(' ');
    const below =
      'owner { id username league rank totalPoints matchPoints accountType profileImage profileTitle }';
    const ofOneType = `{ ${nodes} } fragment F on DttDevice { id macAddress ${below} }`;
    const ofThreeTypes = `{ ${nodes} } fragment F on Device { id macAddress ${below} }`;
    for (const document of [ofOneType, ofThreeTypes]) documents.read(document);
    expect(documents.prepared(ofOneType, undefined, {})).toBeDefined();
    expect(documents.prepared(ofThreeTypes, undefined, {})).toBeUndefined();
  });

  it('counts once for each way it may be compiled, so fewer documents with many conditions are cached', () => {
    const documents = createDocuments(readConfig({}));
    const fragment = 'fragment F on User { id databaseId username league rank totalPoints matchPoints }';
    const spreads = '...F '.repeat(20);
    const plain = (index: number) => `{ viewer { ${spreads} } } ${fragment} # ${index}`;
    const conditional = (index: number) =>
      `query ($a: Boolean!, $b: Boolean!, $c: Boolean!) { viewer { ${spreads}
        ... @skip(if: $a) { rank } ... @skip(if: $b) { rank } ... @skip(if: $c) { rank } } } ${fragment} # ${index}`;
    const countCachedOf = (document: (index: number) => string) => {
      const indexes = Array.from({ length: 150 }, (_, index) => index);
      for (const index of indexes) documents.read(document(index));
      const variables = { a: true, b: true, c: true };
      return indexes.filter((index) => documents.prepared(document(index), undefined, variables)).length;
    };
    expect(countCachedOf(plain)).toBe(150);
    expect(countCachedOf(conditional)).toBeLessThan(100);
  });

  it('takes no more memory than is counted for it when it is invalid', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    const documents = createDocuments(readConfig({}));
    const readInvalid = (from: number, count: number) => {
      for (let index = from; index < from + count; index++)
        expect(() => documents.read(`{ missing${index} }`)).toThrow(AggregateError);
      collect();
      return process.memoryUsage().heapUsed;
    };
    const count = 500;
    const before = readInvalid(0, count);
    const text = '{ missing000 }';
    expect((readInvalid(count, count) - before) / count).toBeLessThan(2 * (2_000 + 200 * text.length));
  });

  it('is evicted when documents take more memory than the limit', () => {
    const documents = createDocuments(readConfig({}));
    const large = (index: number) => `${viewer} # ${index} ${'x'.repeat(200_000)}`;
    for (let index = 0; index < 10; index++) documents.read(large(index));
    expect(documents.prepared(large(0), undefined, {})).toBeUndefined();
    expect(documents.prepared(large(9), undefined, {})).toBeDefined();
  });
});
