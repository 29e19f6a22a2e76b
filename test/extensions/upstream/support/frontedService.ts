/** A stand-in for the live service with a gateway in front of it. Clients use the tokens of the service. */

import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import type { ChangeFeed } from '../../../../src/database/feed/changeFeed.ts';
import { openUpstream, type UpstreamOptions } from '../../../../src/extensions/upstream/hooks.ts';
import {
  openTestDatabase,
  openTestGateway,
  rest,
  type TestDatabase,
  type TestGateway,
} from '../../../support/gateway.ts';
import { extensionsWith } from './mirrorService.ts';
import { createStandIn, type StandInOptions } from './standIn/standIn.ts';

export interface FrontedOptions extends UpstreamOptions {
  readonly settings?: Record<string, string>;
  readonly standIn?: Partial<StandInOptions>;
}

/** Two accounts, each of which has imported a template of the other. */
const accounts: StandInOptions['accounts'] = [
  { id: 1, username: 'alice', tokens: ['token-of-alice', 'second-of-alice'], locked: true },
  { id: 2, username: 'bob', tokens: ['token-of-bob'] },
];

/** The extensions of a gateway in front of the service at this address. */
export const mirrorOf = (UPSTREAM_URL: string, options: UpstreamOptions) =>
  extensionsWith((config, gateway) => openUpstream({ ...config, UPSTREAM_URL }, gateway, options));

/**
 * @param database loses its records first, and stays open: reusing one is faster than opening one for each test.
 */
async function openFrontedService(database: TestDatabase, options: FrontedOptions = {}) {
  await database.pool.query('TRUNCATE "User", "Mirror" RESTART IDENTITY CASCADE');
  const service = await createStandIn({ accounts, rate: 100_000, ...options.standIn });
  onTestFinished(service.stop);
  const timing = options.timing ?? { timeout: 2_000, retries: 1, delay: 1 };

  async function open(settings: Record<string, string> = {}, feed?: ChangeFeed) {
    const gateway = await openTestGateway(
      { ...database, ...(feed && { openChangeFeed: async () => feed }), close: async () => {} },
      {
        settings: {
          UPSTREAM_URL: service.base,
          UPSTREAM_RATE: '0',
          // No test waits for a refresh by itself, unless it says so.
          UPSTREAM_INTERVAL: '600',
          ...options.settings,
          ...settings,
        },
        logLevel: 'debug',
        extensions: mirrorOf(service.base, { ...options, timing }),
      },
    );
    onTestFinished(gateway.close);
    return gateway;
  }

  return {
    service,
    database,
    gateway: await open(),
    /** Another gateway over the same database. @param feed in place of its change feed. */
    openAnother: open,
  };
}
export type FrontedService = Awaited<ReturnType<typeof openFrontedService>>;

/** @returns a function that opens such a service for a test, which is closed after the test. The tests of a file share a database. */
export function openForEachTest(): (options?: FrontedOptions) => Promise<FrontedService> {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase();
  });
  afterAll(() => database?.close());
  return (options) => openFrontedService(database, options);
}

/** Sends a GraphQL request with these headers. */
export const ask = (
  gateway: Pick<TestGateway, 'url'>,
  token: string,
  query: string,
  headers: Record<string, string> = {},
) =>
  fetch(`${gateway.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify({ query }),
  }).then(async (response) => ({
    status: response.status,
    headers: response.headers,
    body: await response.json(),
  }));

export const activate = (
  gateway: Pick<TestGateway, 'url'>,
  token: string,
  id: number,
  selected = 'template { databaseId }',
) => ask(gateway, token, `mutation { activateTemplate(template: { databaseId: ${id} }) { ${selected} } }`);

/** Waits until the mirror has the account. */
export const arrive = (gateway: Pick<TestGateway, 'url'>, token: string) =>
  expect
    .poll(async () => (await ask(gateway, token, '{ viewer { username } }')).status, { timeout: 20_000 })
    .toBe(200);

export const patch = (gateway: TestGateway, token: string, path: string, body: unknown) =>
  rest(gateway, token, path, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
