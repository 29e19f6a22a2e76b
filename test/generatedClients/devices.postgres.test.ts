/** Runs the example of a frontend, whose types are generated from the schema, against a gateway. */

import type { Client } from '@urql/core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, rest, type TestGateway } from '../support/gateway.ts';
import { activate, createClient, followActiveTemplate, readTrainers } from './devices.ts';
import type { DttDeviceQuery } from './generated/rest/graphql.ts';

let gateway: TestGateway;
let alice: Account;
let client: Client;
beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  client = createClient(`${gateway.url}/graphql`, alice.token);
});
afterAll(() => gateway?.close());

it('reads trainers with the programs of their sessions', async () => {
  const { total, trainers } = await readTrainers(client, 2);
  expect(total).toBe(3);
  expect(trainers).toEqual([
    { serialNumber: expect.any(String), programs: expect.arrayContaining(['Program 0 of alice']) },
    { serialNumber: expect.any(String), programs: expect.arrayContaining(['Program 1 of alice']) },
  ]);
});

it('activates a template, and receives an event with the new active template', async () => {
  const names: (string | undefined)[] = [];
  const stop = followActiveTemplate(client, (name) => names.push(name));
  await expect.poll(() => names, { timeout: 20_000 }).toEqual([undefined]);
  expect(await activate(client, alice.dttTemplates[0])).toBe(true);
  await expect.poll(() => names, { timeout: 20_000 }).toEqual([undefined, 'Program 0 of alice']);
  stop();
});

it('throws the error of a response without data', async () => {
  await expect(activate(client, 999)).rejects.toThrow('Template not found or not owned by user');
  await expect(readTrainers(createClient(`${gateway.url}/graphql`, 'wrong'), 1)).rejects.toThrow(
    'Unauthorized',
  );
});

it('reads a REST response with the generated type of its operation', async () => {
  const { body } = await rest(gateway, alice.token, `/dtt/${alice.dttDevices[0]}`);
  // The data of the envelope is the field that the operation selects as `data`.
  const device = body.data as DttDeviceQuery['data'];
  expect(device?.macAddress).toMatch(/^02:00:/);
  const visited: string | null | undefined = device?.lastVisited;
  expect(visited).toBe('2026-01-01T00:30:00.000Z');
});
