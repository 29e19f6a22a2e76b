/** Requests to the GraphQL API: which methods, media types and parameters it accepts, and what it responds where it cannot fulfil them. */

import { describe, expect, it } from 'vitest';
import { notAcceptable } from '../../src/graphql/overHttp.ts';
import { executions } from '../../src/schema/operation.ts';
import { addToken } from '../support/accounts.ts';
import { createFakeFeed } from '../support/feed.ts';
import { graphqlOnce, graphqlOnEveryPath, rest } from '../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);

const query = '{ viewer { username } }';
const withDefault = '# Is it?\n query ($is: Boolean = true) { viewer @include(if: $is) { username } }';
const data = { viewer: { username: 'alice' } };
const activation = () =>
  `mutation { activateTemplate(template: { databaseId: ${alice.dttTemplates[0]} }) { scheduleTypeChanged } }`;

interface Way {
  readonly method?: string;
  readonly accept?: string;
  readonly type?: string;
  readonly token?: string;
}

/** Headers that belong to the connection, the rate limit, a single request or an extension. */
const unrelated = /^(date|dovetail-.*|keep-alive|ratelimit.*|transfer-encoding|x-request-id)$/;

/** Sends parameters, or a text as the body. @returns the whole response, without those headers. */
async function send(given: object | string, { method = 'POST', accept = '*/*', ...way }: Way = {}) {
  const { type = 'application/json', token = alice.token } = way;
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  const parameters = Object.entries(given).map(([name, value]): [string, string] => [name, text(value)]);
  // As browsers send it: a question mark is legal in a query.
  const target = method === 'GET' ? `?${new URLSearchParams(parameters)}`.replaceAll('%3F', '?') : '';
  const own = { Accept: accept, 'Content-Type': type, 'Accept-Encoding': 'identity' };
  const response = await fetch(`${gateway.url}/graphql${target}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, ...own },
    ...(method !== 'GET' && { body: text(given) }),
  });
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !unrelated.test(name)));
  return { status: response.status, headers, body: await response.text() };
}

const headersOfAll = { connection: 'keep-alive', 'x-content-type-options': 'nosniff' };
const headersOfStream = {
  ...headersOfAll,
  'cache-control': 'no-cache',
  vary: 'Authorization, Accept',
  'x-accel-buffering': 'no',
};
const wholeAs = (type: string, text: string) => ({
  headers: {
    ...headersOfAll,
    'cache-control': 'no-store',
    'content-length': String(text.length),
    'content-type': `${type}; charset=utf-8`,
    vary: 'Authorization, Accept, Accept-Encoding',
  },
  body: text,
});
const json = 'application/json';
const graphqlJson = 'application/graphql-response+json';

/** The media types of a response, each with its headers and its body for a result. */
const kinds: readonly [accept: string, as: (text: string) => { headers: object; body: string }][] = [
  [json, (text) => wholeAs(json, text)],
  [graphqlJson, (text) => wholeAs(graphqlJson, text)],
  [
    'text/event-stream',
    (text) => ({
      headers: { ...headersOfStream, 'content-type': 'text/event-stream' },
      body: `:\n\nevent: next\ndata: ${text}\n\nevent: complete\ndata:\n\n`,
    }),
  ],
  [
    'multipart/mixed;subscriptionSpec=1.0',
    (text) => ({
      headers: {
        ...headersOfStream,
        'content-type': 'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
      },
      body: `\r\n--graphql\r\nContent-Type: application/json\r\n\r\n{"payload":${text}}\r\n--graphql--\r\n`,
    }),
  ],
];

const failure = (message: string, extensions: object = { code: 'BAD_USER_INPUT' }, place: object = {}) => ({
  errors: [{ message, ...place, extensions }],
});

type Case = [
  what: string,
  given: object | string,
  /** For each media type that is asked for, in their order. */
  statuses: readonly number[],
  result: object,
  others?: { readonly methods?: readonly string[]; readonly headers?: object; readonly token?: string },
];
const always = (status: number) => kinds.map(() => status);
/** The statuses of what can be read but not run. */
const notRun = [200, 400, 200, 200];
const byPost = { methods: ['POST'] };
const byGet = { methods: ['GET'] };
const ofYoga = { allow: 'GET, POST' };
/** A request that has these parameters beside its query. */
const odd = (given: object, message: string, headers = {}): Case => [
  `a request with ${JSON.stringify(given)}`,
  { query, ...given },
  always(400),
  failure(message),
  { ...byPost, headers },
];

it.each<Case>([
  [
    'an operation by its name',
    { query: 'query Id { viewer { id } } query Name { viewer { username } }', operationName: 'Name' },
    always(200),
    { data },
  ],
  [
    'a mutation with an empty name',
    { query: activation().replace('scheduleTypeChanged', 'viewer { username }'), operationName: '' },
    always(200),
    { data: { activateTemplate: data } },
    byPost,
  ],
  [
    'an operation of which a field fails',
    { query: '{ viewer { username } dttDevices(first: 0) { totalCount } }', operationName: '' },
    always(200),
    {
      ...failure(
        'first must be an integer from 1 to 100',
        { code: 'BAD_USER_INPUT', argument: 'first' },
        { locations: [{ line: 1, column: 23 }], path: ['dttDevices'] },
      ),
      data: { ...data, dttDevices: null },
    },
  ],
  [
    'an invalid subscription, also of another name,',
    { query: 'subscription { nobody }', operationName: 'B' },
    notRun,
    failure('Cannot query field "nobody" on type "Subscription". Did you mean "node"?', undefined, {
      locations: [{ line: 1, column: 16 }],
    }),
  ],
  [
    'a name that no operation has',
    { query: '{ viewer { ...A } } fragment A on User { username }', operationName: 'B' },
    notRun,
    failure('There is no operation B: the document has one without a name'),
  ],
  ['a subscription without a stream', { query: `subscription ${query}` }, [406, 406], failure(notAcceptable)],
  [
    'a token that is unknown',
    { query },
    always(401),
    failure('Unauthorized: the token is unknown or revoked', { code: 'UNAUTHENTICATED' }),
    {
      token: 'unknown',
      headers: {
        'www-authenticate':
          'Bearer error="invalid_token", error_description="the token is unknown or revoked"',
      },
    },
  ],
  [
    'a mutation by GET',
    { query: 'mutation { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }' },
    always(405),
    failure('Can only perform a mutation operation from a POST request.'),
    { ...byGet, headers: { allow: 'POST' } },
  ],
  ...['variables', 'extensions'].map((name): Case => {
    const message = `The parameter ${name} is not JSON: Unexpected end of JSON input`;
    return [`${name} that are not JSON`, { query, [name]: '[' }, always(400), failure(message), byGet];
  }),
  ...[
    ['', 'The body is empty'],
    ['[', 'The body is not JSON: Unexpected end of JSON input'],
    ['\uFEFF ', 'The body is not JSON: Unexpected end of JSON input'],
    ['null', 'The body must be an object with a query, and not null'],
    ['[{}]', 'The body is a list, but a request has one operation; send each in a request of its own'],
  ].map(
    ([body = '', message = '']): Case => [`a body "${body}"`, body, always(400), failure(message), byPost],
  ),
  odd({ query: 1 }, 'query must be a string'),
  odd({ operationName: 1 }, 'operationName must be a string'),
  odd({ unknown: 1 }, 'Unexpected parameter "unknown" in the request body.'),
  odd(
    { extensions: { persistedQuery: {} } },
    'extensions.persistedQuery must have a sha256Hash, which is a string',
  ),
  // Yoga rejects these, and says which methods it takes.
  odd({ variables: [] }, 'Expected "variables" param to be empty or an object, but given array.', ofYoga),
  odd({ extensions: 1 }, 'Expected "extensions" param to be empty or an object, but given number.', ofYoga),
])(
  '%s gets the same result in each media type, with the headers of its error',
  async (_, given, statuses, result, {
    headers = {},
    methods = ['POST', 'GET'],
    token = alice.token,
  } = {}) => {
    for (const method of methods)
      for (const [index, status] of statuses.entries()) {
        const [accept = '', as = expect.fail()] = kinds[index] ?? [];
        const response = as(JSON.stringify(result));
        // A client may ask for it conditionally.
        const isCacheable = method === 'GET' && index < 2 && !('errors' in result);
        const ofCacheable = { 'cache-control': 'private, no-cache', etag: expect.any(String) };
        const all = { ...response.headers, ...headers, ...(isCacheable && ofCacheable) };
        for (let time = 0; time < 3; time++)
          expect(await send(given, { method, accept, token }), `${method} ${accept}`).toEqual({
            ...{ status, headers: all, body: response.body },
          });
      }
  },
);

it.each<[what: string, body: object | string, type?: string]>([
  ['of a type in capital letters', { query }, 'Application/JSON ; charset=utf-8'],
  ['with a byte order mark', `\uFEFF${JSON.stringify({ query })}`],
  ['with nulls', { query, operationName: null, variables: null, unknown: null }],
  ['with null for variables that have defaults', { query: withDefault, variables: null }],
])('a body %s is read', async (_, body, type) => {
  for (const [accept, as] of kinds)
    expect((await send(body, { accept, ...(type !== undefined && { type }) })).body).toBe(
      as(JSON.stringify({ data })).body,
    );
});

it('parameters of a GET that are missing, null or empty count as none', async () => {
  const nulls = { variables: 'null', extensions: 'null', operationName: '' };
  for (const given of [{ query: withDefault }, { query: withDefault, ...nulls }])
    expect((await send(given, { method: 'GET' })).body).toBe(JSON.stringify({ data }));
});

const allow = { allow: 'GET, HEAD, POST' };
const otherType =
  'A POST takes a body of the type application/json: send the header Content-Type: application/json';

it.each<[way: Way, status: number, message: string, headers?: object]>([
  ...['application/xml', 'application/graphql+json', '*/*;q=0', `${json};charset=iso-8859-1`].flatMap(
    (accept) =>
      ['GET', 'POST'].map((method): [Way, number, string] => [{ method, accept }, 406, notAcceptable]),
  ),
  // Such as a form of a page of another origin.
  ...['text/plain', `text/plain;${json}`, 'application/jsonp', 'application/x-www-form-urlencoded', ''].map(
    (type): [Way, number, string, object] => [{ type }, 415, otherType, { connection: 'close' }],
  ),
  [{ method: 'DELETE' }, 405, 'Use GET or POST', allow],
  [{ method: 'PUT' }, 405, 'Use GET or POST. With graphql-sse, set singleConnection: false', allow],
])(
  'a request by %j is rejected as JSON with %s, and runs nothing',
  async (way, status, message, headers = {}) => {
    const before = executions.compiled + executions.interpreted;
    const response = wholeAs(json, JSON.stringify(failure(message)));
    expect(await send({ query: activation() }, way)).toEqual({
      ...{
        status,
        headers: { ...response.headers, vary: 'Accept-Encoding', ...headers },
        body: response.body,
      },
    });
    expect(executions.compiled + executions.interpreted).toBe(before);
  },
);

const invalid = 'the token is unknown or revoked';
const invalidTokenChallenge = `Bearer error="invalid_token", error_description="${invalid}"`;

const globalId = (text: string) => Buffer.from(text).toString('base64url');

describe('invalid input', () => {
  const byId = 'query ($id: Int!) { dttDevice(databaseId: $id) { id } }';
  const byGlobalId = 'query ($id: ID!) { node(id: $id) { id } }';
  const filtered =
    'query ($last: Int, $where: DttSessionFilter) { dttDevices(last: $last) { totalCount } dttSessions(where: $where) { totalCount } }';
  const activating = (template: string) =>
    `mutation { activateTemplate(template: ${template}) { scheduleTypeChanged } }`;
  const byName = 'query One { viewer { id } } query Two { viewer { id } }';
  const noId = 'databaseId must be an integer of at least 1';
  const notACursor = (argument: string) => `${argument} must be a cursor that this list has given`;
  const notADateTime = /DateTime must be ISO 8601 with an offset from UTC/;
  const notAnId = /is not a global id of this schema$/;
  const conditional = 'A subscription cannot have @skip or @include on its field';
  const foreign = globalId('OssmDevice:1');

  it.each<[query: string, message: string | RegExp, argument?: string, variables?: Record<string, unknown>]>([
    ['', /./],
    ['{ viewer { password } }', /^Cannot query field "password"/],
    ['{ dttDevices(ownerId: 1) { totalCount } }', /^Unknown argument "ownerId"/, 'ownerId'],
    ['{ dttDevice { id } }', /is required/, 'databaseId'],
    ['{ dttDevice(databaseId: 0) { id } }', noId, 'databaseId'],
    [activating('{ databaseId: 0 }'), noId, 'template'],
    ['{ dttDevice(databaseId: "1") { id } }', /^Int cannot represent/, 'databaseId'],
    [byId, /^Variable "\$id" of required type "Int!" was not provided/, 'databaseId'],
    [byId, /^Variable "\$id" got invalid value "1"/, 'databaseId', { id: '1' }],
    [byName, 'operationName has to name the operation: the document has One, Two'],
    [
      'query ($id: Int = 1) { dttDevice(databaseId: $id) { id } }',
      /must not be null/,
      'databaseId',
      { id: null },
    ],
    ['{ dttDevices(before: "x") { totalCount } }', notACursor('before'), 'before'],
    ...['User', 'User:1:2', 'User:01', 'User:2147483648', 'Query:1', '__proto__:1'].map(
      (text): [string, RegExp, string, { id: string }] => [byGlobalId, notAnId, 'id', { id: globalId(text) }],
    ),
    [byGlobalId, `"${'x'.repeat(64)}" is not a global id of this schema`, 'id', { id: 'x'.repeat(10_000) }],
    [
      'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }',
      'ids must have at most 100 items',
      'ids',
      { ids: Array.from({ length: 101 }, () => globalId('User:1')) },
    ],
    [activating('{ databaseId: 1, id: "x" }'), /must specify exactly one key/, 'template'],
    [activating('{ id: "x" }'), '"x" is not a global id of this schema', 'template'],
    [
      activating(`{ id: "${foreign}" }`),
      `"${foreign}" is the global id of an OssmDevice, not of a DttTemplate`,
      'template',
    ],
    [
      'query ($n: Int!) { dttDevice(databaseId: $n) { id } dttDevices(first: $n) { totalCount } }',
      /^Variable "\$n"/,
    ],
    ['{ dttSessions(where: { createdAt: { gte: "2024" } }) { totalCount } }', notADateTime, 'where'],
    [filtered, notADateTime, 'where', { where: { createdAt: { gte: '2024' } } }],
    ['{ viewer { id @include(if: 1) } }', /^Boolean cannot represent/, 'if'],
    ['subscription ($x: Boolean!) { viewer @include(if: $x) { id } }', conditional],
    ['subscription { ...a @skip(if: false) } fragment a on Subscription { viewer { id } }', conditional],
    ['subscription { ... @skip(if: false) { viewer @skip(if: false) { id } } }', conditional],
    [
      'subscription { ...F } fragment F on Subscription { ... @skip(if: true) { viewer { id } } }',
      conditional,
    ],
  ])(
    'is rejected with BAD_USER_INPUT and the reason: %s',
    async (query, message, argument, variables = {}) => {
      const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, query, variables);
      expect(Object.values(data ?? {}).filter((value) => value !== null)).toEqual([]);
      // A message about a variable begins with its name.
      const [, variable] = /^Variable "\$(\w+)" (?!is not defined)/.exec(errors?.[0]?.message ?? '') ?? [];
      // Each error about a place in the document names it.
      if (![byName, ''].includes(query)) expect(errors?.[0]?.locations).toHaveLength(1);
      expect(errors).toEqual([
        expect.objectContaining({
          message: typeof message === 'string' ? message : expect.stringMatching(message),
          extensions: {
            code: 'BAD_USER_INPUT',
            ...(argument !== undefined && { argument }),
            ...(variable !== undefined && { variable }),
          },
        }),
      ]);
    },
  );

  it('is not logged', () => {
    expect(gateway.log).toEqual([]);
  });
});

describe('a client without a valid token', () => {
  it.each([
    ['a query', '{ viewer { id } }'],
    ['a query in a fragment', '{ ...__All } fragment __All on Query { viewer { id } }'],
    ['a query in a fragment without a name', '{ ... { viewer { id } } }'],
    ['a query in another operation', 'query A { viewer { id } } query B { __typename }'],
    ['a query under an alias', '{ __schema: viewer { id } }'],
    ['a definition', '{ __typename } type X { a: Int }'],
    ['a mutation', 'mutation { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }'],
  ])('gets 401 for %s', async (_, query) => {
    // Sent with a valid token first, so that a document that is cached has been parsed and validated.
    await graphqlOnEveryPath(gateway, bob.token, query);
    const missing = 'the request has no Authorization header, such as Authorization: Bearer TOKEN';
    for (const [token, problem, challenge] of [
      [undefined, missing, 'Bearer'],
      [`${alice.token.slice(0, -1)}.`, invalid, invalidTokenChallenge],
      [`dvt_${'A'.repeat(43)}`, invalid, invalidTokenChallenge],
    ] as const) {
      const { status, headers, data, errors } = await graphqlOnEveryPath(gateway, token, query);
      expect(status).toBe(401);
      expect(headers.get('WWW-Authenticate')).toBe(challenge);
      expect(data ?? null).toBeNull();
      expect(errors).toEqual([
        { message: `Unauthorized: ${problem}`, extensions: { code: 'UNAUTHENTICATED' } },
      ]);
    }
  });

  it('gets 401 when its account was deleted after the token was looked up', async () => {
    // Since this feed never announces the change, the token stays cached.
    const { feed } = createFakeFeed();
    const other = await gatewayBeside(gateway.database, { feed });
    const { client } = gateway.database;
    const { id } = await client.user.create({ data: { username: 'gone', subscriptionTier: 'ultra' } });
    const token = await addToken(client, 'gone');
    expect((await rest(other, token, '/dtt')).status).toBe(200);
    await client.user.delete({ where: { id } });

    for (const time of ['first', 'second']) {
      const before = executions.compiled + executions.interpreted;
      const response = await graphqlOnce(other, token, '{ viewer { username } }');
      expect(response.status, time).toBe(401);
      expect(executions.compiled + executions.interpreted - before).toBe(1);
      expect(response.headers.get('WWW-Authenticate')).toBe(invalidTokenChallenge);
      expect(response.errors?.map(({ message }) => message)).toEqual([`Unauthorized: ${invalid}`]);
      expect(response.errors?.map(({ extensions }) => extensions.code)).toEqual(['UNAUTHENTICATED']);
    }
    const { status, headers } = await rest(other, token, '/users/me');
    expect([status, headers.get('WWW-Authenticate')]).toEqual([401, invalidTokenChallenge]);
  });
});
