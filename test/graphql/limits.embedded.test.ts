/** Hostile operations are rejected on every path with the same message, before they cost anything. */

import { executeSync, getIntrospectionQuery, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { messagesOf, preparing } from '../support/execution.ts';
import { graphqlOnce, graphqlOnEveryPath } from '../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

const many = (count: number, item: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => item(index)).join(' ');

/** A document with this number of levels, at least 3. */
const deep = (levels: number) => {
  const rounds = Math.floor((levels - 3) / 2);
  const last = levels % 2 === 0 ? 'owner{id}' : 'id';
  return `{viewer{activeDttTemplate{${'owner{activeDttTemplate{'.repeat(rounds)}${last}${'}}'.repeat(rounds)}}}}`;
};

/** Each fragment has four times as many fields as the one that it spreads. */
const bomb = (fragments: number) =>
  `{ viewer { ...F0 } } ${many(
    fragments,
    (index) => `fragment F${index} on User {
    ${many(4, (alias) => `a${alias}: activeDttTemplate { owner { ...F${index + 1} } }`)}
  }`,
  )} fragment F${fragments} on User { id }`;

/** A cycle of this number of fragments. The last one also spreads the first ten, which the validation compares in pairs. */
const circle = (fragments: number) =>
  `{ viewer { ...F0 } } ${many(fragments - 1, (index) => `fragment F${index} on User { ...F${index + 1} }`)}
   fragment F${fragments - 1} on User { ${many(10, (index) => `...F${index}`)} }`;

const tooLarge = '{ dttTemplates(first: 100) { nodes { sessions(first: 100) { nodes { id name } } } } }';
const lists =
  'query ($n: Int) { dttTemplates(first: $n) { nodes { sessions(first: $n) { nodes { id name } } } } }';
const complexity = (found: number, most = 20_000) =>
  `The operation has a complexity of ${found}; at most ${most} is allowed`;

const prepareAny = preparing({ MAX_COMPLEXITY: '1000000', MAX_TOKENS: '100000' });

/** The complexity of a document's operation. */
function countComplexity(text: string, variables: object = {}): number {
  const prepared = prepareAny(text, { variables: { ...variables } });
  if ('errors' in prepared) throw prepared.errors[0];
  return prepared.complexity;
}

/** How many fields there are in a response. */
function fieldsIn(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum, item) => sum + fieldsIn(item), 0);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, field) => sum + 1 + fieldsIn(field), 0);
}
const fieldsOfResponse = (document: string, variableValues = {}) =>
  fieldsIn(executeSync({ schema, document: parse(document), variableValues }).data);

/** A query for the whole schema as tools send it, repeated this number of times. */
const wholeSchema = (times: number) =>
  `{ ${many(times, (index) => `a${index}: __schema { ...S }`)} } ${getIntrospectionQuery()
    .replace(/^[\s\S]*?__schema \{/, 'fragment S on __Schema {')
    .replace(/\}\s*\}\s*fragment FullType/, '} fragment FullType')}`;

const tooDeep = 'The operation is 21 levels deep; at most 20 are allowed';
const hostile: [name: string, document: string, message: string | string[]][] = [
  ['21 levels', deep(21), tooDeep],
  [
    '21 levels of fragments',
    `{ viewer { ...F0 } } ${many(9, (index) => `fragment F${index} on User { activeDttTemplate { owner { ...F${index + 1} } } }`)}
     fragment F9 on User { activeDttTemplate { ... { id } } }`,
    tooDeep,
  ],
  [
    '31 aliases',
    `{ ${many(31, (index) => `a${index}: __typename`)} }`,
    'The operation has 31 aliases; at most 30 are allowed',
  ],
  [
    '31 directives',
    `{ ${many(31, () => '__typename @include(if: true)')} }`,
    'The operation has 31 directives; at most 30 are allowed',
  ],
  [
    'an alias of 101 characters',
    `{ ${'a'.repeat(101)}: viewer { id } ${'b'.repeat(100)}: viewer { id } }`,
    'The operation has an alias of 101 characters; at most 100 are allowed',
  ],
  [
    '1001 tokens',
    `{ ${many(999, () => '__typename')} }`,
    'Syntax Error: Document contains more that 1000 tokens. Parsing aborted.',
  ],
  [
    'more lines than tokens can need',
    `${'\n'.repeat(2_000)}{ viewer { id } }`,
    'The operation has 2001 lines; at most 2000 are allowed',
  ],
  [
    'arguments longer than tokens can need',
    `{ dttDevice(databaseId: 1) { id } node(id: "${'x'.repeat(19_998)}") { id } }`,
    'The arguments of the operation have 20001 characters; at most 20000 are allowed',
  ],
  ['lists in lists', tooLarge, complexity(20_202)],
  ['fragments that multiply the fields exponentially', bomb(7), complexity(60_073)],
  ['the whole schema five times', wholeSchema(5), complexity(54_755)],
  [
    'a cycle of fragments',
    '{ viewer { ...A } } fragment A on User { ...B } fragment B on User { ...A }',
    'Cannot spread fragment "A" within itself via "B".',
  ],
  [
    'the same field repeated',
    `{ ${many(996, () => '__typename')} }`,
    'The operation repeats its fields too often; each is needed only once',
  ],
  [
    '900 validation errors',
    `{ ${many(900, (index) => `x${index}`)} }`,
    [
      ...Array.from({ length: 10 }, (_, index) => `Cannot query field "x${index}" on type "Query".`),
      'Too many validation errors, error limit reached. Validation aborted.',
    ],
  ],
];

describe('a hostile document', () => {
  it.each(hostile)('is rejected with the reason: %s', async (_, document, message) => {
    const { status, data, errors } = await graphqlOnEveryPath(gateway, alice.token, document);
    expect(errors?.map((error) => error.message)).toEqual([message].flat());
    expect(errors?.every(({ extensions }) => extensions.code === 'BAD_USER_INPUT')).toBe(true);
    expect(data).toBeUndefined();
    // GraphQL over HTTP has this status for clients that do not accept its own media type.
    expect(status).toBe(200);
  });

  it.each([
    ['levels', deep(20)],
    ['aliases', `{ ${many(30, (index) => `a${index}: __typename`)} }`],
    ['directives', `{ ${many(30, () => '__typename @include(if: true)')} }`],
    ['lines', `${'\n'.repeat(1_999)}{ viewer { id } }`],
    ['characters of arguments', `{ node(id: "${'x'.repeat(19_998)}") { id } }`],
  ])('is run with as many %s as are allowed', (_, document) => {
    expect(messagesOf(preparing()(document))).toEqual([]);
  });

  it('is run with as many values and levels of variables as are allowed, and with no more', () => {
    const query = 'query ($n: Int) { dttDevices(first: $n) { totalCount } }';
    const messages = (unused: unknown) => messagesOf(preparing()(query, { variables: { unused } }));
    const levels = (count: number) => JSON.parse('['.repeat(count) + ']'.repeat(count));
    expect(messages(levels(64))).toEqual([]);
    expect(messages({ null: null, levels: levels(64) })).toEqual(['The variables are nested too deeply']);
    // One for each list, and one for each value in it.
    const values = (last: number) => [Array(2_497).fill(null), Array(last).fill('a text')];
    expect(messages(values(2_500))).toEqual([]);
    const message = 'The variables have more than 5000 values; at most 5000 are allowed';
    expect(messages(values(2_501))).toEqual([message]);
  });

  it('of an anonymous client is rejected with 401, or with the reason if it selects only the schema', async () => {
    for (const [name, isSchema] of [
      ['21 levels', false],
      ['lists in lists', false],
      ['31 aliases', true],
    ] as const) {
      const [, document = '', message] = hostile.find(([title]) => title === name) ?? [];
      const { status, errors } = await graphqlOnce(gateway, undefined, document);
      if (isSchema) expect(errors?.[0]?.message).toBe(message);
      else expect([status, errors?.[0]?.extensions.code]).toEqual([401, 'UNAUTHENTICATED']);
    }
  });

  it('is not logged', () => {
    expect(gateway.log).toEqual([]);
  });
});

describe('an introspection query', () => {
  /** The dearest that was found, for what it counts. */
  const typesInTypes =
    'fields { name args { name type { name } } type { ...T ofType { ...T ofType { ...T } } } } possibleTypes { fields { name } }';
  it.each([
    getIntrospectionQuery(),
    getIntrospectionQuery({ inputValueDeprecation: true, oneOf: true, specifiedByUrl: true }),
    `{ __schema { types { ${typesInTypes} } } } fragment T on __Type { fields { args { name type { name } } } possibleTypes { name } }`,
  ])('counts for as many fields as its response has, within a factor of six: %s', (document) => {
    const ratio = countComplexity(document) / fieldsOfResponse(document);
    expect(ratio).toBeGreaterThan(1 / 6);
    expect(ratio).toBeLessThan(2);
  });

  it('of an anonymous client runs if it is what tools send, and is rejected if it has that three times', async () => {
    expect((await graphqlOnce(gateway, undefined, getIntrospectionQuery())).errors).toBeUndefined();
    expect((await graphqlOnce(gateway, undefined, 'mutation { __typename }')).status).toBe(401);
    const { errors } = await graphqlOnce(gateway, undefined, wholeSchema(3));
    expect(errors?.[0]?.message).toBe(complexity(countComplexity(wholeSchema(3))));
  });
});

const ofConnection = 'fragment F on DttSessionConnection { nodes { __typename } }';
it.each<[text: string, counts: number]>([
  // As many items as a list may have, and at least one.
  ['{ nodes(ids: "x") { __typename } }', 2],
  ['{ nodes(ids: []) { __typename } }', 2],
  ['query ($ids: [ID!] = ["x", "y", "z"]) { nodes(ids: $ids) { __typename } }', 4],
  ['query ($tooMany: [ID!]!) { nodes(ids: $tooMany) { __typename } }', 1_001],
  ['{ dttSessions(first: -7) { nodes { __typename } } }', 3],
  ['{ dttSessions(first: 1000) { nodes { __typename } } }', 102],
  ['{ dttSessions { nodes { __typename } } }', 52],
  ['{ dttSessions(first: 7, last: -7) { nodes { __typename } } }', 3],
  ['query ($n: Int = -7) { dttSessions(first: $n) { nodes { __typename } } }', 3],
  ['{ dttSessions(first: 7, last: null) { nodes { __typename } } }', 9],
  // Lists without a size, and what describes the schema.
  ['{ dttTemplates(first: 2) { nodes { segments { __typename } } } }', 14],
  ['{ __type(name: "x") { name } __schema { description } __typename }', 103],
  // A fragment for each list that it is spread in, also one that has no type.
  [`{ a: dttSessions(first: 1) { ...F } b: dttSessions(first: 7) { ...F } } ${ofConnection}`, 3 + 9],
  ['{ ... { dttSessions(first: 7) { ... on DttSessionConnection { nodes { __typename } } } } }', 9],
  // All sessions that statistics read, and all groups that they may have.
  ['{ dttSessionStats(maxGroups: 300) { groups { __typename } timeZone } }', 1_000 + 303],
])('the complexity counts what is fetched: %s', (text, counts) => {
  const tooMany = Array.from({ length: 1_000 }, () => 'x');
  expect(countComplexity(text, { tooMany })).toBe(counts);
});

describe('the complexity of a filter and an order', () => {
  const counted = (given: string) =>
    countComplexity(`{ dttSessions(first: 1, ${given}) { totalCount } }`) -
    countComplexity('{ dttSessions(first: 1) { totalCount } }');

  it.each<[given: string, counts: number]>([
    ['where: null', 0],
    ['where: {}', 0],
    ['where: { passed: { eq: true } }', 100],
    ['where: { passed: { eq: true } }, orderBy: [{ field: NAME, direction: ASC }]', 150],
    ['where: { name: { in: ["a", "b", "c"] }, template: { name: { contains: "a" } } }', 200],
    ['where: { or: [{ template: {} }, { not: { passed: { eq: true } } }] }', 250],
  ])('is 50 for each object that is not empty: %s', (given, counts) => {
    expect(counted(given)).toBe(counts);
  });

  it('is the same in variables, and computed again for other variables', () => {
    const text =
      'query ($where: DttSessionFilter, $time: DateTime) { a: dttSessions(first: 1, where: $where) { totalCount } b: dttSessions(first: 1, where: { createdAt: { gt: $time } }) { totalCount } }';
    const bare = countComplexity(text);
    const where = { name: { in: ['a', 'b'] } };
    expect(countComplexity(text, { where, time: '2026-01-01T00:00:00Z' }) - bare).toBe(100);
    expect(countComplexity(text)).toBe(bare);
  });
});

it('a document is run or rejected depending on the values of its variables', async () => {
  // 2 + 99 * (2 + 100 * 2), and 202 more.
  for (const n of [99, 100, 99]) {
    const text = lists.replace('first: $n) { nodes { id', 'first: 100) { nodes { id');
    const { errors } = await graphqlOnEveryPath(gateway, alice.token, text, { n });
    expect(errors?.map(({ message }) => message)).toEqual(n === 99 ? undefined : [complexity(20_202)]);
  }
  const again = await graphqlOnEveryPath(gateway, alice.token, lists, { n: 'all' });
  expect(again.errors?.[0]?.message).toMatch(/^Variable "\$n" got invalid value "all"/);
});

const filtered = 'query ($a: DttSessionFilter) { dttSessions(first: 1, where: $a) { totalCount } }';
/** A filter in which every field is invalid. Each error of graphql-js quotes the whole filter. */
const wrong = Object.fromEntries(
  Array.from({ length: 50 }, (_, index) => [`k${index}`, index === 0 ? '"'.repeat(120_000) : index]),
);

it('errors about variables are few and short, however large the variables are', async () => {
  const { errors } = await graphqlOnEveryPath(gateway, alice.token, filtered, { a: wrong });
  expect(errors).toHaveLength(11);
  expect(errors?.[0]?.message).toMatch(/^Variable "\$a" got invalid value \{ k0: "[\\"]+…$/);
  expect(errors?.[10]?.message).toMatch(/^Too many errors processing variables/);
  for (const { message } of errors ?? []) expect(message.length).toBeLessThanOrEqual(1_000);
});

it.each([
  [
    { MAX_DEPTH: '3' },
    '4 levels deep; at most 3',
    '{ viewer { ...F activeDttTemplate { owner { ...F } } } } fragment F on User { id }',
  ],
  [{ MAX_TOKENS: '5' }, 'contains more that 5 tokens', '{ viewer { id } }'],
  // The parser would run out of stack.
  [{ MAX_TOKENS: '100000' }, 'nested too deeply to be read', '{viewer'.repeat(40_000)],
  // So would the validation, sometimes already with as many as the default MAX_TOKENS allows.
  [{ MAX_TOKENS: '100000' }, 'nested too deeply to be checked', circle(1_000)],
])('a limit is applied with the settings %j: %s', (settings, message, document) => {
  expect(messagesOf(preparing(settings)(document))).toEqual([expect.stringContaining(message)]);
});

const closed = await gatewayBeside(gateway.database, {
  settings: { INTROSPECTION: 'off', GRAPHIQL: 'off' },
});

describe('a gateway with INTROSPECTION=off and GRAPHIQL=off', () => {
  it('rejects introspection, and every query of an anonymous client with 401', async () => {
    const { errors } = await graphqlOnEveryPath(closed, alice.token, '{ __schema { description } }');
    expect(errors?.map(({ message }) => message)).toEqual([
      'GraphQL introspection has been disabled, but the requested query contained the field "__schema".',
    ]);
    expect((await graphqlOnEveryPath(closed, undefined, '{ __schema { description } }')).status).toBe(401);
    expect((await graphqlOnEveryPath(closed, undefined, '{ __typename }')).status).toBe(401);
    expect((await graphqlOnEveryPath(closed, alice.token, '{ __typename }')).data).toEqual({
      __typename: 'Query',
    });
  });

  it.each([
    ['{ veiwer { id } }', 'Cannot query field "veiwer" on type "Query".', ' Did you mean "viewer"?'],
    [
      'query ($a: DttSessionFilter) { dttSessions(where: $a) { totalCount } }',
      'Variable "$a" got invalid value { nam: {} }; Field "nam" is not defined by type "DttSessionFilter".',
      ' Did you mean "name", "and", or "not"?',
    ],
  ])('suggests no names, while a gateway with introspection does: %s', async (query, message, suggestion) => {
    for (const [at, more] of [[closed, ''] as const, [gateway, suggestion] as const]) {
      const { errors } = await graphqlOnEveryPath(at, alice.token, query, { a: { nam: {} } });
      expect(errors?.map((error) => error.message)).toEqual([message + more]);
    }
    // Without a token, what looks like introspection is validated and gets no suggestions either.
    const { errors } = await graphqlOnEveryPath(gateway, undefined, '{ __viewer }');
    expect(errors?.map((error) => error.message)).toEqual(['Cannot query field "__viewer" on type "Query".']);
  });

  it('shows no GraphiQL page, and no other description of its APIs', async () => {
    const page = await fetch(`${closed.url}/graphql`, { headers: { Accept: 'text/html,*/*;q=0.8' } });
    expect(await page.json()).toMatchObject({ errors: [{ message: 'Must provide query string.' }] });
    for (const path of ['/docs', '/openapi.json', '/schema.graphql'])
      expect((await fetch(closed.url + path)).status).toBe(404);
  });
});
