/** Runs the examples of docs/clients.md for graphql-request and gql.tada against a gateway. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';
import { addPassedSessions } from '../support/passedSessions.ts';
import { activation, templatesQuery } from './generated/docs/app/src/operations.ts';
import { codeOf, createRequests, readSessions } from './generated/docs/app/src/request.ts';
import { devicesQuery } from './generated/docs/tada/src/devices.ts';

let gateway: TestGateway;
let alice: Account;
let client: ReturnType<typeof createRequests>;
beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  client = createRequests(`${gateway.url}/graphql`, alice.token);
});
afterAll(() => gateway?.close());

it('graphql-request reads all pages of a filtered and sorted list', async () => {
  const passed = await addPassedSessions(gateway.database.client, alice);
  const names: (string | null)[] = [];
  for await (const { node } of readSessions(client)) names.push(node.name);
  expect(names).toEqual(passed);
});

it('graphql-request activates a template, and returns the code of an error', async () => {
  const [first, second] = alice.dttTemplates.map((id) =>
    Buffer.from(`DttTemplate:${id}`).toString('base64url'),
  );
  await client.request(activation, { id: first ?? '' });
  const { activateTemplate } = await client.request(activation, { id: second ?? '' });
  expect(activateTemplate?.previousTemplate).toMatchObject({ id: first, isActive: false });
  const error = await createRequests(`${gateway.url}/graphql`, 'nobody')
    .request(templatesQuery)
    .catch(Object);
  expect(codeOf(error)).toBe('UNAUTHENTICATED');
});

it('generated types cover the results and variables of a gql.tada document', async () => {
  const data = await client.request(devicesQuery, { first: 2 });
  const names = data.devices?.nodes.map(
    (each) => ('serialNumber' in each && each.serialNumber) || each.macAddress,
  );
  expect(names).toEqual([expect.stringMatching(/^02:/), expect.stringMatching(/^02:/)]);
  // @ts-expect-error The query does not select it.
  expect(data.devices?.totalCount).toBeUndefined();
  // @ts-expect-error The variable is a number.
  const error = await client.request(devicesQuery, { first: 'two' }).catch(Object);
  expect(codeOf(error)).toBe('BAD_USER_INPUT');
});
