/** The GraphQL door itself: how it takes requests, and the page that it shows to a browser. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../accounts.ts';
import { openTestGateway, rest, type TestGateway } from '../gateway.ts';

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
  it('answers a query, with variables and the name of an operation', async () => {
    const query = `query Device($id: Int!) { dttDevice(databaseId: $id) { bubbleId } }
      query Viewer { viewer { username } }`;
    const variables = JSON.stringify({ id: alice.dttDevices[0] });
    const device = await get({ query, variables, operationName: 'Device' });
    expect(device.status).toBe(200);
    expect(await device.json()).toEqual({ data: { dttDevice: { bubbleId: 'alice-dtt-0' } } });
    const viewer = await get({ query, operationName: 'Viewer' });
    expect(await viewer.json()).toEqual({ data: { viewer: { username: 'alice' } } });
  });

  it('refuses a mutation, and changes nothing', async () => {
    const [id] = alice.dttTemplates;
    const query = `mutation { activateTemplate(databaseId: ${id}) { scheduleTypeChanged } }`;
    for (const document of [
      query,
      `query Viewer { viewer { username } } ${query.replace('mutation', 'mutation M')}`,
    ]) {
      const response = await get({ query: document, ...(document !== query && { operationName: 'M' }) });
      expect(response.status).toBe(405);
      expect(response.headers.get('Allow')).toBe('POST');
      expect(await response.json()).toEqual({
        errors: [
          {
            message: 'Can only perform a mutation operation from a POST request.',
            extensions: { code: 'BAD_USER_INPUT' },
          },
        ],
      });
    }
    expect((await rest(gateway, alice.token, '/dtt/templates/active')).body.data).toBeNull();
  });

  it.each(['variables', 'extensions'])('says so when %s are no JSON', async (name) => {
    const response = await get({ query: '{ viewer { username } }', [name]: '{' });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      errors: [{ message: 'variables and extensions must be JSON', extensions: { code: 'BAD_USER_INPUT' } }],
    });
    expect(gateway.log).toEqual([]);
  });

  it.each(['application/json', 'application/graphql-response+json', '*/*'])(
    'is a bad request without a query, for who accepts %s',
    async (accept) => {
      for (const parameters of [{}, { query: '' }, { operationName: 'Viewer' }]) {
        const response = await get(parameters, { Accept: accept });
        expect(response.status).toBe(400);
        expect(await response.json()).toEqual({
          errors: [{ message: 'Must provide query string.', extensions: { code: 'BAD_USER_INPUT' } }],
        });
      }
    },
  );

  it('asks for a token as POST does', async () => {
    const response = await get({ query: '{ viewer { username } }' }, { Authorization: 'Bearer x' });
    expect(response.status).toBe(401);
    expect(response.headers.get('WWW-Authenticate')).toBe('Bearer');
    expect(await response.json()).toEqual({
      errors: [{ message: 'Unauthorized', extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });
});

describe('a body of another type than JSON, such as that of a form of a foreign page,', () => {
  const query = () =>
    `mutation { activateTemplate(databaseId: ${alice.dttTemplates[0]}) { scheduleTypeChanged } }`;
  const boundary = 'xxx';

  it.each<[string, () => string]>([
    ['text/plain', () => JSON.stringify({ query: query() })],
    ['application/graphql', query],
    ['application/graphql+json', () => JSON.stringify({ query: query() })],
    ['application/jsonp', () => JSON.stringify({ query: query() })],
    ['text/plain; application/json', () => JSON.stringify({ query: query() })],
    ['application/x-www-form-urlencoded', () => new URLSearchParams({ query: query() }).toString()],
    [
      `multipart/form-data; boundary=${boundary}`,
      () =>
        `--${boundary}\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${JSON.stringify({ query: query() })}\r\n` +
        `--${boundary}\r\nContent-Disposition: form-data; name="map"\r\n\r\n{}\r\n--${boundary}--\r\n`,
    ],
    ['', () => JSON.stringify({ query: query() })],
  ])('runs nothing, even with a token: %s', async (type, body) => {
    const response = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${alice.token}`, 'Content-Type': type },
      body: body(),
    });
    expect(response.status).toBe(415);
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
