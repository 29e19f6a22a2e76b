/**
 * Programs like the three clients in use, which were written for the live service. They run against a stand-in for it and,
 * unchanged, against a gateway in front of an identical stand-in. They must get the same responses, byte for byte.
 */

import { afterEach, describe, expect, it } from 'vitest';
import { type Gateway, openGateway } from '../../../../src/server/gateway.ts';
import { readConfig } from '../../../support/settings.ts';
import { databaseWith } from '../../../support/setUp.ts';
import { createStandIn, type StandIn } from '../support/standIn/standIn.ts';
import { type Client, createClient, type RecordedResponse } from './client.ts';
import { createHomeAutomation } from './homeAutomation.ts';
import { requestUnlinked, syncLock } from './lockBot.ts';
import { changeProgram, listAll, sendInvalidRequests } from './toolServer.ts';

const token = 'token-of-alice';
const alice = 1;
const bob = 2;
const unlinked = 3;

/** The requests of each client; several rounds of a client that polls. */
const clients: Readonly<Record<string, (client: Client) => Promise<void>>> = {
  async 'a home automation integration that polls'(client) {
    const homeAutomation = createHomeAutomation(client);
    for (let poll = 0; poll < 3; poll++) await homeAutomation.poll();
  },
  'a bot that synchronizes the lock of its own account': (client) => syncLock(client),
  'a bot that synchronizes the lock of a linked user': (client) => syncLock(client, bob),
  'a bot that passes the id of its own account': (client) => syncLock(client, alice),
  'a bot that passes the id of a user who is not linked': (client) => requestUnlinked(client, unlinked),
  'a tool server that reads every list and every record': listAll,
  'a tool server that activates and changes a program': changeProgram,
  'a tool server that sends invalid requests': sendInvalidRequests,
};

let standIns: StandIn[] = [];
let gateway: Gateway | undefined;
/** It stays empty: REST alone never reads an account. */
const { database } = await databaseWith();
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  for (const standIn of standIns) await standIn.stop();
  standIns = [];
});

/** Opens a stand-in that behaves the same each time: its clock advances by a second whenever it is read. */
async function openStandIn(): Promise<StandIn> {
  let time = Date.UTC(2027, 0, 1);
  const now = () => {
    time += 1000;
    return new Date(time);
  };
  const standIn = await createStandIn({
    rate: 1_000_000,
    now,
    accounts: [
      { id: alice, username: 'alice', tokens: [token], linked: [bob] },
      { id: bob, username: 'bob', tokens: [] },
      { id: unlinked, username: 'carol', tokens: [] },
    ],
  });
  standIns.push(standIn);
  return standIn;
}

/** Opens a gateway in front of the stand-in. */
async function openInFrontOf(standIn: StandIn): Promise<Gateway> {
  gateway = await openGateway(
    readConfig({
      PORT: '0',
      LOG_LEVEL: 'silent',
      DATABASE_URL: database.pool.options.connectionString ?? '',
      UPSTREAM_URL: standIn.base,
      UPSTREAM_RATE: '0',
      RATE_LIMIT: '1000000',
    }),
  );
  return gateway;
}

async function transcriptOf(
  use: (client: Client) => Promise<void>,
  base: string,
): Promise<readonly RecordedResponse[]> {
  const client = createClient(base, token);
  await use(client);
  return client.transcript;
}

describe.each(Object.entries(clients))('%s', (_name, use) => {
  it('gets the same responses from a gateway as from the service', async () => {
    const direct = await transcriptOf(use, (await openStandIn()).base);
    expect(direct.length).toBeGreaterThan(2);
    const { url } = await openInFrontOf(await openStandIn());
    expect(await transcriptOf(use, `${url}/api/v1`)).toEqual(direct);
  });
});
