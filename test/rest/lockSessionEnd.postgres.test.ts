/** The end of a lock session in the REST interface. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, rest, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

const start = '2026-01-01T00:00:00.000Z';
const stored = '2026-01-02T00:00:00.000Z';

it.each([
  [
    'the start plus the duration, while it is active without an end date',
    { isActive: true, endDate: null },
    '2026-01-01T01:00:00.000Z',
  ],
  ['the stored end date, while it is active', { isActive: true, endDate: stored }, stored],
  ['null, when it is over without an end date', { isActive: false, endDate: null }, null],
  ['the stored end date, when it is over', { isActive: false, endDate: stored }, stored],
])('the end of a lock session is %s', async (_, state, endDate) => {
  const { client } = gateway.database;
  const lockState = state.isActive ? 'locked' : 'completed';
  await client.lockSession.updateMany({
    where: { ownerId: alice.userId },
    data: { isActive: false, lockState: 'completed' },
  });
  const { id } = await client.lockSession.create({
    data: {
      bubbleId: `end-${JSON.stringify(state)}`,
      publicId: `end-${JSON.stringify(state)}`,
      ownerId: alice.userId,
      duration: 3600,
      startDate: start,
      createdAt: start,
      lockState,
      ...state,
    },
  });
  const { body } = await rest(gateway, alice.token, `/lkbx/sessions/${id}`);
  expect(body.data).toMatchObject({ startDate: start, createdAt: start, endDate });
});
