/** Runs clients with generated types against a gateway: those of docs/clients.md, and one of the REST interface. */

import { expect, it } from 'vitest';
import { rest } from '../support/gateway.ts';
import { addPassedSessions } from '../support/passedSessions.ts';
import { gatewayWith } from '../support/setUp.ts';
import { activation, templatesQuery } from './generated/docs/app/src/operations.ts';
import { codeOf, createRequests, readSessions } from './generated/docs/app/src/request.ts';
import { devicesQuery } from './generated/docs/tada/src/devices.ts';
import type { GetDttDeviceQuery } from './generated/rest/graphql.ts';
import { activateNewest, createRestClient } from './rest.ts';

const { gateway, alice } = await gatewayWith(['alice']);
const client = createRequests(`${gateway.url}/graphql`, alice.token);

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

it('activates a template and reads the active one, with typed responses', async () => {
  const client = createRestClient(gateway.url, alice.token);
  expect(await activateNewest(client)).toEqual(['warmup of 60 s', 'training of 300 s']);
  const { data } = await client.GET('/dtt/templates/active');
  const toy: string | null | undefined = data?.data?.toyId;
  expect(toy).toBeNull();
  expect(data?.data?.id).toBe(alice.dttTemplates[0]);
});

it('reads a response with the generated type of its operation', async () => {
  const { body } = await rest(gateway, alice.token, `/dtt/${alice.dttDevices[0]}`);
  // The data of the envelope is the field that the operation selects as `data`.
  const device = body.data as GetDttDeviceQuery['data'];
  const visited: string | null | undefined = device?.lastVisited;
  expect([device?.macAddress, visited]).toEqual([
    expect.stringMatching(/^02:00:/),
    '2026-01-01T00:30:00.000Z',
  ]);
});

it('gets a typed error', async () => {
  const client = createRestClient(gateway.url, 'nobody');
  const { data, error, response } = await client.GET('/dtt/{id}', { params: { path: { id: 1 } } });
  const message: string | undefined = error?.error;
  expect([data, message, response.status]).toEqual([undefined, 'Unauthorized', 401]);
});

it('does not compile with paths, bodies and fields that the API does not have', async () => {
  const client = createRestClient(gateway.url, alice.token);
  // @ts-expect-error: there is no such path.
  await client.GET('/dtt/nothing');
  // @ts-expect-error: a template can be activated, but not deactivated.
  await client.POST('/dtt/templates/{id}', { params: { path: { id: 1 } }, body: { isActive: false } });
  const { data } = await client.GET('/users/me');
  // @ts-expect-error: a user has no such field.
  expect(data?.data.password).toBeUndefined();
});
