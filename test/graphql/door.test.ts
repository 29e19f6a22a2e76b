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

  it('asks for a token as POST does', async () => {
    const response = await get({ query: '{ viewer { username } }' }, { Authorization: 'Bearer x' });
    expect(response.status).toBe(401);
    expect(response.headers.get('WWW-Authenticate')).toBe('Bearer');
    expect(await response.json()).toEqual({
      errors: [{ message: 'Unauthorized', extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });
});
