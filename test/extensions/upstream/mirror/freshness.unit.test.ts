/** Whether a request about an account is served from the mirror, and how fresh the response has to be. */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createBudget } from '../../../../src/extensions/upstream/client/budget.ts';
import {
  type AccountFreshness,
  createAccountFreshness,
} from '../../../../src/extensions/upstream/mirror/accountFreshness.ts';
import { freshnessOf, waitUntilFresh } from '../../../../src/extensions/upstream/mirror/freshness.ts';
import { openExchange } from '../../../../src/http/exchange.ts';
import { nobodyListens } from '../../../support/exchanges.ts';

it.each([
  [undefined, undefined],
  ['', undefined],
  ['no-store', undefined],
  ['no-cache', 0],
  ['No-Cache', 0],
  ['no-store, no-cache', 0],
  ['max-age=0', 0],
  ['max-age=30', 30_000],
  ['no-transform, max-age="30"', 30_000],
  ['max-age = 5 , no-transform', 5_000],
  ['max-age=x', undefined],
  ['max-stale=9', undefined],
  ['x-no-cache', undefined],
])('Cache-Control: %s limits the age in milliseconds to %s', (header, milliseconds) => {
  expect(freshnessOf(header)).toBe(milliseconds);
});

const waits = { arrival: 50, freshness: 50, awakening: 50, forwarding: 50, announcement: 50 };

/** When the lists were read, as the database has it. */
let inDatabase: number | undefined;
let freshness: AccountFreshness;
const run = vi.fn<() => Promise<boolean>>();
let account: Parameters<typeof waitUntilFresh>[1];

/** Has a run read all lists that began so many milliseconds ago. */
function read(ago = 0): boolean {
  freshness.begin(true).end(performance.now() - ago, 0);
  return true;
}

beforeEach(() => {
  inDatabase = undefined;
  let mark: number | undefined;
  freshness = createAccountFreshness(
    {
      read: async () => ({
        refreshedAt: inDatabase,
        age: Date.now() - (inDatabase ?? 0),
        mark,
        isLeased: false,
      }),
      async storeWrite() {
        mark = 1;
        return { mark, previous: undefined };
      },
    },
    () => {},
  );
  run.mockReset().mockResolvedValue(false);
  account = {
    budget: createBudget(0),
    freshness,
    progress: () => 3,
    isUnreachable: false,
    touch: () => undefined,
    arrival: () => run(),
    refresh: () => run(),
  };
});

/** The outcome of a request: the status, if it is not served from the mirror, and headers. */
async function request(headers: Record<string, string> = {}) {
  const incoming = Object.assign(new IncomingMessage(new Socket()), { headers, url: '/' });
  const exchange = openExchange(incoming, new ServerResponse(incoming), nobodyListens);
  const { status, headers: said } = (await waitUntilFresh(exchange, account, waits)) ?? {};
  return { status, age: exchange.headers.Age, retryAfter: said?.['Retry-After'] };
}

const served = { status: undefined, age: '0', retryAfter: undefined };
const unavailable = { status: 503, age: undefined, retryAfter: '5' };

describe('a request about an account', () => {
  it('is served with the age of the mirror if the account has been read', async () => {
    read(7_900);
    expect(await request()).toEqual({ ...served, age: '7' });
    expect(run).not.toHaveBeenCalled();
  });

  it('is rejected with 503 if the account has not been read, and waits a while for the first run', async () => {
    expect(await request()).toEqual(unavailable);
    run.mockImplementation(async () => read());
    expect(await request()).toEqual(served);
  });

  it('is rejected with 503 if the account is forgotten while the request waits for a refresh', async () => {
    inDatabase = Date.now() - 1_000;
    await freshness.reload();
    run.mockImplementation(async () => {
      inDatabase = undefined;
      return freshness.reload();
    });
    expect(await request({ 'cache-control': 'no-cache' })).toEqual(unavailable);
  });

  it('waits for a run, or is rejected with 503, if a write has not been read back', async () => {
    read(1_000);
    await freshness.noteWrite({ parts: ['locks'] });
    expect(await request()).toEqual(unavailable);
    expect(run).toHaveBeenCalledTimes(1);
    run.mockImplementation(async () => read());
    expect(await request()).toEqual(served);
  });

  it('waits for the refresh that it starts if it is the first request for a while', async () => {
    read(60_000);
    run.mockImplementation(async () => {
      await setImmediate();
      return read();
    });
    account = { ...account, touch: () => run() };
    expect(await request()).toEqual(served);
  });

  it('does not wait for a refresh that the budget does not allow, nor for one that takes too long', async () => {
    read(1_000);
    account.budget.pauseFor(60_000);
    // The other one has no more for refreshes, but for requests that clients wait for.
    for (const budget of [account.budget, createBudget(8)]) {
      account = { ...account, budget };
      expect(await request({ 'cache-control': 'no-cache' })).toEqual({ ...served, age: '1' });
    }
    expect(run).not.toHaveBeenCalled();
    account = { ...account, budget: createBudget(0) };
    run.mockImplementation(() => new Promise(() => {}));
    expect(await request({ 'cache-control': 'no-cache' })).toEqual({ ...served, age: '1' });
    expect(run).toHaveBeenCalledTimes(1);
  });
});
