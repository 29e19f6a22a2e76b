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

describe('a REST route', () => {
  it('answers the viewer', async () => {
    const { status, body } = await rest(gateway, alice.token, '/users/me');
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ id: alice.userId, username: 'alice' });
  });
});
