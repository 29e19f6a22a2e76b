/** Requests to the GraphQL API: which methods, media types and parameters it accepts, and what it responds where it cannot fulfil them. */

import { describe, expect, it } from 'vitest';
import { executions } from '../../src/schema/operation.ts';
import { addToken } from '../support/accounts.ts';
import { createFakeFeed } from '../support/feed.ts';
import {
  graphqlOnce,
  graphqlOnEveryPath,
  openBeside,
  openTestGateway,
  postGraphql,
  rest,
} from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);

const get = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/graphql?${new URLSearchParams(parameters)}`, {
    headers: { Authorization: `Bearer ${alice.token}`, ...headers },
  });

describe('GET', () => {
  it('responds to the operation that is named', async () => {
    const query = 'query Id { viewer { databaseId } } query Name { viewer { username } }';
    const response = await get({ query, operationName: 'Name' });
    expect(await response.json()).toEqual({ data: { viewer: { username: 'alice' } } });
  });

  it('rejects a mutation and changes nothing', async () => {
    const [id] = alice.dttTemplates;
    const query = `mutation { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged } }`;
    const response = await get({ query });
    expect(response.status).toBe(405);
    expect(response.headers.get('Allow')).toBe('POST');
    expect((await response.json()).errors[0].message).toBe(
      'Can only perform a mutation operation from a POST request.',
    );
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body.data).toBeNull();
  });

  it.each(['variables', 'extensions'])(
    'responds 400 with the reason when %s are not JSON, and logs nothing',
    async (name) => {
      const response = await get({ query: '{ viewer { username } }', [name]: '{' });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        errors: [
          {
            message: expect.stringMatching(`^The parameter ${name} is not JSON: Expected property name`),
            extensions: { code: 'BAD_USER_INPUT' },
          },
        ],
      });
      expect(gateway.log).toEqual([]);
    },
  );
});

/** Posts three times: the first is executed, and the others may come from the cache. The responses must be equal. */
async function post(body: string, headers: Record<string, string> = {}) {
  const responses = [];
  for (let time = 0; time < 3; time++) {
    const response = await postGraphql(gateway, alice.token, body, headers);
    const type = response.headers.get('Content-Type');
    responses.push({ status: response.status, type, ...(await response.json()) });
  }
  for (const response of responses) expect(response).toEqual(responses[0]);
  return responses[0];
}

const json = 'application/json; charset=utf-8';
const graphqlJson = 'application/graphql-response+json; charset=utf-8';

describe('POST', () => {
  const query = '{ viewer { username } }';
  const data = { viewer: { username: 'alice' } };

  it.each([
    ['application/json', json],
    ['text/html, */*;q=0.1', json],
    ['application/graphql-response+json, application/json;q=0.9', graphqlJson],
    ['application/graphql-response+json;q=0, application/*;q=0.5, text/event-stream', json],
    ['application/json; charset=iso-8859-1, application/graphql-response+json', graphqlJson],
    ['multipart/mixed;boundary="graphql";subscriptionSpec=1.0, application/json', json],
  ])('responds in a media type that the client accepts: %s', async (accept, type) => {
    const status = type.startsWith('application/json') ? 200 : 400;
    const unsupported = 'query ($n: Int!) { dttDevices(first: $n) { totalCount } }';
    expect(await post(JSON.stringify({ query }), { Accept: accept })).toEqual({ status: 200, type, data });
    for (const wrong of [
      { query: unsupported, variables: { n: 'x' } },
      { query: unsupported, operationName: 'Other' },
      { query: '{ nothing }' },
      {},
    ])
      expect(await post(JSON.stringify(wrong), { Accept: accept })).toMatchObject({
        status,
        type,
        errors: [{}],
      });
  });

  it('reads a body in one way for every media type of the response', async () => {
    const send = async (type: string, body: string) => {
      const headers = { 'Content-Type': type, Accept: 'text/event-stream' };
      const response = await postGraphql(gateway, alice.token, body, headers);
      return [response.status, await response.text()];
    };
    const result =
      ':\n\nevent: next\ndata: {"data":{"viewer":{"username":"alice"}}}\n\nevent: complete\ndata:\n\n';
    expect(await send('Application/JSON ; charset=utf-8', JSON.stringify({ query }))).toEqual([200, result]);
    expect(await send('application/json', `\uFEFF${JSON.stringify({ query })}`)).toEqual([200, result]);
  });

  it.each([
    ['', 'The body is empty'],
    [' ', 'The body is not JSON: Unexpected end of JSON input'],
    [
      '{"query":"{ viewer { id } }"',
      /^The body is not JSON: Expected ',' or '}' after property value in JSON/,
    ],
    ["{'query':'{ viewer { id } }'}", /^The body is not JSON: Expected property name or '}' in JSON/],
    ['\uFEFF{"query":}', /^The body is not JSON: Unexpected token '}'/],
    ['[', /^The body is not JSON: /],
    ['null', 'The body must be an object with a query, and not null'],
  ])('says why the body cannot be read: %j', async (body, message) => {
    expect(await post(body)).toMatchObject({
      status: 400,
      errors: [{ message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } }],
    });
  });

  it('treats null parameters as absent', async () => {
    expect((await post(JSON.stringify({ query, operationName: null, variables: null }))).data).toEqual(data);
    expect((await post(JSON.stringify({ query, unknown: null }))).data).toEqual(data);
    const withDefault = 'query ($is: Boolean = true) { viewer @include(if: $is) { username } }';
    expect((await post(JSON.stringify({ query: withDefault, variables: null }))).data).toEqual(data);
    expect(await (await get({ query: withDefault })).json()).toEqual({ data });
    const response = await get({ query, variables: 'null', extensions: 'null', operationName: '' });
    expect(await response.json()).toEqual({ data });
  });

  it.each<[what: string, odd: object, message: string]>([
    ['an unknown parameter', { unknown: 1 }, 'Unexpected parameter "unknown" in the request body.'],
    ['an operationName that is not a string', { operationName: 1 }, 'operationName must be a string'],
    [
      'variables that are a list',
      { variables: [] },
      'Expected "variables" param to be empty or an object, but given array.',
    ],
    [
      'extensions that are a number',
      { extensions: 1 },
      'Expected "extensions" param to be empty or an object, but given number.',
    ],
    ['a query that is not a string', { query: 1 }, 'query must be a string'],
  ])(
    'rejects %s each time it is repeated, also with a query whose response is cached',
    async (_, odd, message) => {
      expect((await post(JSON.stringify({ query }))).data).toEqual(data);
      const { errors, ...response } = await post(JSON.stringify({ query, ...odd }));
      expect(response).not.toHaveProperty('data');
      expect(errors).toEqual([
        { message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } },
      ]);
    },
  );

  it('forbids other caches to store the response, and names what it varies by', async () => {
    for (const path of ['executed', 'from the cache']) {
      const { headers } = await graphqlOnce(gateway, alice.token, '{ viewer { rank username } }');
      expect(headers.get('Cache-Control'), path).toBe('no-store');
      expect(headers.get('Vary')).toBe('Authorization, Accept, Accept-Encoding');
    }
  });
});

describe('a request that accepts no media type of GraphQL', () => {
  it.each(['application/xml', 'application/graphql+json', '*/*;q=0', 'application/json;charset=iso-8859-1'])(
    'is rejected with 406 and runs nothing: %s',
    async (accept) => {
      const [id] = alice.dttTemplates;
      const query = `mutation { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged } }`;
      for (let turn = 0; turn < 2; turn++)
        expect(await post(JSON.stringify({ query }), { Accept: accept })).toMatchObject({ status: 406 });
      expect((await get({ query: '{ viewer { username } }' }, { Accept: accept })).status).toBe(406);
      expect((await rest(gateway, alice.token, '/dtt/templates/active')).body.data).toBeNull();
    },
  );
});

describe('a body of another type than JSON, such as a form of a page of another origin,', () => {
  const query = () =>
    `mutation { activateTemplate(template: { databaseId: ${alice.dttTemplates[0]} }) { scheduleTypeChanged } }`;

  it.each<[string, () => string]>([
    ['text/plain', () => JSON.stringify({ query: query() })],
    ['application/jsonp', () => JSON.stringify({ query: query() })],
    ['application/x-www-form-urlencoded', () => new URLSearchParams({ query: query() }).toString()],
    ['', () => JSON.stringify({ query: query() })],
  ])('is rejected with 415 and runs nothing, even with a token: %s', async (type, body) => {
    const response = await postGraphql(gateway, alice.token, body(), { 'Content-Type': type });
    expect(response.status).toBe(415);
    expect(response.headers.get('Connection')).toBe('close');
    expect(await response.json()).toEqual({
      errors: [
        {
          message:
            'A POST takes a body of the type application/json: send the header Content-Type: application/json',
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body.data).toBeNull();
  });
});

const invalid = 'the token is unknown or revoked';
const invalidTokenChallenge = `Bearer error="invalid_token", error_description="${invalid}"`;

const globalId = (text: string) => Buffer.from(text).toString('base64url');

describe('invalid input', () => {
  const byId = 'query ($id: Int!) { dttDevice(databaseId: $id) { id } }';
  const byGlobalId = 'query ($id: ID!) { node(id: $id) { id } }';
  const filtered = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
  const activating = (template: string) =>
    `mutation { activateTemplate(template: ${template}) { scheduleTypeChanged } }`;
  const byName = 'query One { viewer { id } } query Two { viewer { id } }';
  const noId = 'databaseId must be an integer of at least 1';
  const notACursor = (argument: string) => `${argument} must be a cursor that this list has given`;
  const notADateTime = /DateTime must be ISO 8601 with an offset from UTC/;
  const notAnId = /is not a global id of this schema$/;
  const foreign = globalId('DttDevice:1');

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
    ...['first: 0', 'first: 101', 'last: 0', 'last: 101'].map((given): [string, string, string] => {
      const [argument = ''] = given.split(':');
      const message = `${argument} must be an integer from 1 to 100`;
      return [`{ dttDevices(${given}) { totalCount } }`, message, argument];
    }),
    [
      'query ($id: Int = 1) { dttDevice(databaseId: $id) { id } }',
      /must not be null/,
      'databaseId',
      { id: null },
    ],
    ['{ dttDevices(first: 1, last: 1) { totalCount } }', 'first and last cannot be used together', 'first'],
    ['{ dttDevices(offset: -1) { totalCount } }', 'offset must be an integer of at least 0', 'offset'],
    [
      '{ dttDevices(offset: 1, last: 1) { totalCount } }',
      'offset and last cannot be used together',
      'offset',
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
      `"${foreign}" is the global id of a DttDevice, not of a DttTemplate`,
      'template',
    ],
    [
      'query ($n: Int!) { dttDevice(databaseId: $n) { id } dttDevices(first: $n) { totalCount } }',
      /^Variable "\$n"/,
    ],
    ['{ dttSessions(where: { createdAt: { gte: "2024" } }) { totalCount } }', notADateTime, 'where'],
    [filtered, notADateTime, 'where', { where: { createdAt: { gte: '2024' } } }],
    ['{ viewer { id @include(if: 1) } }', /^Boolean cannot represent/, 'if'],
  ])(
    'is rejected with BAD_USER_INPUT and the reason: %s',
    async (query, message, argument, variables = {}) => {
      const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, query, variables);
      expect(Object.values(data ?? {}).filter((value) => value !== null)).toEqual([]);
      // A message about a variable begins with its name.
      const [, variable] = /^Variable "\$(\w+)" (?!is not defined)/.exec(errors?.[0]?.message ?? '') ?? [];
      // An error about an argument has its location in the document.
      if (argument === 'where') expect(errors?.[0]?.locations).toHaveLength(1);
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
    ['a query in a fragment', '{ ...All } fragment All on Query { viewer { id } }'],
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
    const other = await openTestGateway(await openBeside(gateway.database), { feed });
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
    await other.close();
  });
});
