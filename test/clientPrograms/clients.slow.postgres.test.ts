/**
 * Clients as there are three of, each used to the live service: they run against a stand-in for it and, unchanged, against
 * a gateway in front of an equal one. They must not notice, but where the gateway is better: each exception is named.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { type Gateway, openGateway } from '../../src/server/gateway.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';
import { createStandIn, type StandIn } from '../support/standIn/standIn.ts';
import { type Client, createClient, type Told } from './client.ts';
import { createHomeAutomation } from './homeAutomation.ts';
import { keepInStep, tryUnlinked } from './lockBot.ts';
import { lookAround, misunderstand, train } from './toolServer.ts';

const token = 'token-of-alice';
const alice = 1;
const bob = 2;
const unlinked = 3;

/** What each client does, more than once where that is what it does. */
const clients: Readonly<Record<string, (client: Client) => Promise<void>>> = {
  async 'a home automation integration that polls'(client) {
    const homeAutomation = createHomeAutomation(client);
    for (let poll = 0; poll < 3; poll++) await homeAutomation.poll();
  },
  'a bot that keeps its own lock in step': (client) => keepInStep(client),
  'a bot that keeps the lock of a linked user in step': (client) => keepInStep(client, bob),
  'a bot that names its own account': (client) => keepInStep(client, alice),
  'a bot that names a user who is not linked': (client) => tryUnlinked(client, unlinked),
  'a tool server that lists everything and gets each': lookAround,
  'a tool server that activates and changes a program': train,
  'a tool server that has misunderstood': misunderstand,
};

interface Exception {
  readonly name: string;
  /** Why what the gateway responds with is better, or no worse. */
  readonly reason: string;
  /** What the gateway responds with in place of what the service does; undefined where they are the same. */
  readonly instead: (told: Told) => unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const pathOf = ({ path }: Told) => path.replace(/\?.*/, '');

/** The fields of a segment of a program that the interface has. */
const segmentFields = ['id', 'type', 'duration', 'repeat'];

const exceptions: readonly Exception[] = [
  {
    name: 'no message beside a null',
    reason: 'the envelope of the interface is `ok` and `data`; clients look at the data',
    instead: ({ method, body }) =>
      method === 'GET' && isObject(body) && body.data === null && 'message' in body
        ? { ok: true, data: null }
        : undefined,
  },
  {
    name: 'an error that says what a page may be',
    reason: 'the service only says that something is wrong (docs/rest.md#paging)',
    instead: ({ path, status }) => {
      if (status !== 400 || !/[?&](limit|offset)=/.test(path)) return undefined;
      const error = path.includes('limit=101')
        ? 'limit must be an integer from 1 to 100'
        : 'offset must be an integer of at least 0';
      return { ok: false, error };
    },
  },
  {
    name: 'no fields of segments that the interface does not have',
    reason: 'a program that was written with `speed` and more is read with the documented fields alone',
    instead(told) {
      const { method, body } = told;
      if (method !== 'GET' || !pathOf(told).startsWith('/dtt/templates/') || !isObject(body))
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

const used = new Set<string>();

/** What a client is told by a gateway that has the account here. */
function byGateway(told: Told): Told {
  const exception = exceptions.find(({ instead }) => instead(told) !== undefined);
  if (!exception) return told;
  used.add(exception.name);
  return { ...told, body: exception.instead(told) };
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

/** One like all others: the writes of a client are a second apart for it. */
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

/** A gateway whose only setting is where the service is. */
async function openInFront(standIn: StandIn): Promise<Gateway> {
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

/** Waits until the account is here: what is relayed until then has no age. */
async function arrival({ url }: Pick<Gateway, 'url'>): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const response = await fetch(`${url}/api/v1/dtt/templates/active`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    if (response.status === 200 && response.headers.has('Age')) return;
    await sleep(100);
  }
  throw new Error('the account did not arrive');
}

async function transcriptOf(use: (client: Client) => Promise<void>, base: string): Promise<readonly Told[]> {
  const client = createClient(base, token);
  await use(client);
  return client.transcript;
}

describe.each(Object.entries(clients))('%s', (_name, use) => {
  it('is told by the gateway what the service tells it', async () => {
    const direct = await transcriptOf(use, (await openStandIn()).base);
    expect(direct.length).toBeGreaterThan(2);
    const { url } = await openInFront(await openStandIn());
    await arrival({ url });
    expect(await transcriptOf(use, `${url}/api/v1`)).toEqual(direct.map(byGateway));
  });

  it('does not notice that the gateway meets its account for the first time', async () => {
    const direct = await transcriptOf(use, (await openStandIn()).base);
    const { url } = await openInFront(await openStandIn());
    const met = await transcriptOf(use, `${url}/api/v1`);
    // What is relayed comes as it is, until the account is here.
    const expected = direct.map((told, index) => {
      const relayed = JSON.stringify(met[index]) === JSON.stringify(told);
      return relayed ? told : byGateway(told);
    });
    expect(met).toEqual(expected);
  });
});

describe('a home automation integration of somebody who sees the devices of a linked user', () => {
  it('is told of its own account alone by a gateway that has the account here', async () => {
    const poll = (client: Client) => createHomeAutomation(client).poll();
    const own = await transcriptOf(poll, (await openStandIn()).base);
    const standIn = await openStandIn();
    standIn.account(alice).listsLinked = true;
    expect(await transcriptOf(poll, standIn.base)).not.toEqual(own);
    const { url } = await openInFront(standIn);
    await arrival({ url });
    expect(await transcriptOf(poll, `${url}/api/v1`)).toEqual(own.map(byGateway));
  });
});

describe('the exceptions', () => {
  it('are all met by one of the clients', () => {
    expect([...used].sort()).toEqual(exceptions.map(({ name }) => name).sort());
  });
});

describe.each(Object.entries(clients))('the stand-in', (name, use) => {
  it(`tells the same twice to ${name}`, async () => {
    const twice = [];
    for (let i = 0; i < 2; i++) twice.push(await transcriptOf(use, (await openStandIn()).base));
    expect(twice[0]).toEqual(twice[1]);
    // Nothing but what a client expects to fail does.
    const failed = (twice[0] ?? []).filter(({ status }) => ![200, 400, 403, 404, 422].includes(status));
    expect(failed).toEqual([]);
  });
});
