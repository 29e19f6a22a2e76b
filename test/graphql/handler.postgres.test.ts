/** The GraphQL handler: which methods, media types and parameters of requests it accepts. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, rest, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

const get = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/graphql?${new URLSearchParams(parameters)}`, {
    headers: { Authorization: `Bearer ${alice.token}`, ...headers },
  });

describe('GET', () => {
  it('responds to a query, with variables and the name of an operation', async () => {
    const query = `query Device($id: Int!) { dttDevice(databaseId: $id) { bubbleId } }
      query Viewer { viewer { username } }`;
    const variables = JSON.stringify({ id: alice.dttDevices[0] });
    const device = await get({ query, variables, operationName: 'Device' });
    expect(device.status).toBe(200);
    expect(await device.json()).toEqual({ data: { dttDevice: { bubbleId: 'alice-dtt-0' } } });
    const viewer = await get({ query, operationName: 'Viewer' });
    expect(await viewer.json()).toEqual({ data: { viewer: { username: 'alice' } } });
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
    'responds 400 when %s are not JSON, and logs nothing',
    async (name) => {
      const response = await get({ query: '{ viewer { username } }', [name]: '{' });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        errors: [
          { message: 'variables and extensions must be JSON', extensions: { code: 'BAD_USER_INPUT' } },
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
    const response = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json', ...headers },
      body,
    });
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
    ])
      expect(await post(JSON.stringify(wrong), { Accept: accept })).toMatchObject({
        status,
        type,
        errors: [{}],
      });
  });

  it('treats null parameters as absent', async () => {
    expect((await post(JSON.stringify({ query, operationName: null, variables: null }))).data).toEqual(data);
    expect((await post(JSON.stringify({ query, unknown: null }))).data).toEqual(data);
    const response = await get({ query, variables: 'null', extensions: 'null', operationName: '' });
    expect(await response.json()).toEqual({ data });
  });

  it.each<[what: string, odd: object, message: string]>([
    ['an unknown parameter', { unknown: 1 }, 'There is no parameter "unknown"'],
    ['an operationName that is not a string', { operationName: 1 }, 'operationName must be a string'],
    ['variables that are a list', { variables: [] }, 'variables must be an object'],
    ['extensions that are a number', { extensions: 1 }, 'extensions must be an object'],
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
      const response = await fetch(`${gateway.url}/graphql`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ query: '{ viewer { rank username } }' }),
      });
      await response.text();
      expect(response.headers.get('Cache-Control'), path).toBe('no-store');
      expect(response.headers.get('Vary')).toBe('Authorization, Accept, Accept-Encoding');
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
    const response = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': type },
      body: body(),
    });
    expect(response.status).toBe(415);
    expect(response.headers.get('Connection')).toBe('close');
    expect(await response.json()).toEqual({
      errors: [
        {
          message: 'A POST takes a body of the type application/json',
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body.data).toBeNull();
  });
});
