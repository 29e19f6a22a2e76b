/**
 * Programs like the three clients in use, which were written for the live service. They run against a stand-in for it and,
 * unchanged, against a gateway in front of an identical stand-in. They must get the same responses, except where the gateway's
 * are better: each of these exceptions is listed.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { type Gateway, openGateway } from '../../src/server/gateway.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
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

interface Exception {
  readonly name: string;
  /** Why the body that the gateway sends is better, or no worse. */
  readonly reason: string;
  /** The body that the gateway sends instead of the service's; undefined if both are the same. */
  readonly instead: (response: RecordedResponse) => unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const pathOf = ({ path }: RecordedResponse) => path.replace(/\?.*/, '');

/** The documented fields of a program's segment. */
const segmentFields = ['id', 'type', 'duration', 'repeat'];

const exceptions: readonly Exception[] = [
  {
    name: 'no message beside data that is null',
    reason: 'the documented envelope is `ok` and `data`; clients read the data',
    instead: ({ method, body }) =>
      method === 'GET' && isObject(body) && body.data === null && 'message' in body
        ? { ok: true, data: null }
        : undefined,
  },
  {
    name: 'an error that names the valid values of limit and offset',
    reason: 'the error of the service does not say what is wrong (docs/rest.md#paging)',
    instead: ({ path, status }) => {
      if (status !== 400 || !/[?&](limit|offset)=/.test(path)) return undefined;
      const error = path.includes('limit=101')
        ? 'limit must be an integer from 1 to 100'
        : 'offset must be an integer of at least 0';
      return { ok: false, error };
    },
  },
  {
    name: 'no undocumented fields of segments',
    reason:
      'a program that was written with `speed` and other fields is read with the documented fields only',
    instead(response) {
      const { method, body } = response;
      if (method !== 'GET' || !pathOf(response).startsWith('/dtt/templates/') || !isObject(body))
        return undefined;
      const { data } = body;
      if (!isObject(data) || !Array.isArray(data.Segment)) return undefined;
      const Segment = data.Segment.map((segment: Record<string, unknown>) =>
        Object.fromEntries(Object.entries(segment).filter(([field]) => segmentFields.includes(field))),
      );
      return JSON.stringify(Segment) === JSON.stringify(data.Segment)
        ? undefined
        : { ...body, data: { ...data, Segment } };
    },
  },
];

const usedExceptions = new Set<string>();

/** The response of a gateway that mirrors the account, in place of this response of the service. */
function responseOfGateway(response: RecordedResponse): RecordedResponse {
  const exception = exceptions.find(({ instead }) => instead(response) !== undefined);
  if (!exception) return response;
  usedExceptions.add(exception.name);
  return { ...response, body: exception.instead(response) };
}

let standIns: StandIn[] = [];
let gateway: Gateway | undefined;
let database: TestDatabase | undefined;

afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  await database?.close();
  database = undefined;
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
  database = await openTestDatabase();
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

/** Waits until the gateway mirrors the account: responses that are relayed until then have no Age. */
async function untilMirrored({ url }: Pick<Gateway, 'url'>): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const response = await fetch(`${url}/api/v1/dtt/templates/active`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    if (response.status === 200 && response.headers.has('Age')) return;
    await sleep(100);
  }
  throw new Error('the account was not mirrored in time');
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
  it('gets the same responses from a gateway that mirrors its account as from the service', async () => {
    const direct = await transcriptOf(use, (await openStandIn()).base);
    expect(direct.length).toBeGreaterThan(2);
    const { url } = await openInFrontOf(await openStandIn());
    await untilMirrored({ url });
    expect(await transcriptOf(use, `${url}/api/v1`)).toEqual(direct.map(responseOfGateway));
  });

  it('gets the same responses while the gateway does not mirror its account yet', async () => {
    const direct = await transcriptOf(use, (await openStandIn()).base);
    const { url } = await openInFrontOf(await openStandIn());
    const actual = await transcriptOf(use, `${url}/api/v1`);
    // Until the account is mirrored, the responses of the service are relayed unchanged.
    const expected = direct.map((response, index) => {
      const isRelayed = JSON.stringify(actual[index]) === JSON.stringify(response);
      return isRelayed ? response : responseOfGateway(response);
    });
    expect(actual).toEqual(expected);
  });
});

describe('a home automation integration for an account whose lists include a linked user', () => {
  it('gets only the records of its own account from a gateway that mirrors the account', async () => {
    const poll = (client: Client) => createHomeAutomation(client).poll();
    const own = await transcriptOf(poll, (await openStandIn()).base);
    const standIn = await openStandIn();
    standIn.account(alice).listsLinked = true;
    expect(await transcriptOf(poll, standIn.base)).not.toEqual(own);
    const { url } = await openInFrontOf(standIn);
    await untilMirrored({ url });
    expect(await transcriptOf(poll, `${url}/api/v1`)).toEqual(own.map(responseOfGateway));
  });
});

describe('the exceptions', () => {
  it('each apply to a response that one of the clients gets', () => {
    expect([...usedExceptions].sort()).toEqual(exceptions.map(({ name }) => name).sort());
  });
});

describe.each(Object.entries(clients))('the stand-in', (name, use) => {
  it(`sends the same responses each time to ${name}`, async () => {
    const twice = [];
    for (let i = 0; i < 2; i++) twice.push(await transcriptOf(use, (await openStandIn()).base));
    expect(twice[0]).toEqual(twice[1]);
    // No request fails except with the errors that the clients provoke.
    const failed = (twice[0] ?? []).filter(({ status }) => ![200, 400, 403, 404, 422].includes(status));
    expect(failed).toEqual([]);
  });
});
