/** Whether a request is let through to an account, and how fresh it wants its response. */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openExchange } from '../../src/http/exchange.ts';
import { type AccountFreshness, createAccountFreshness } from '../../src/mirror/accountFreshness.ts';
import { createBudget } from '../../src/mirror/budget.ts';
import { freshnessOf, waitUntilFresh } from '../../src/mirror/freshness.ts';
import type { MirroredAccount } from '../../src/mirror/mirroredAccount.ts';

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
])('Cache-Control: %s', (header, milliseconds) => {
  expect(freshnessOf(header)).toBe(milliseconds);
});

const waits = { arrival: 50, freshness: 50, awakening: 50, write: 50, relay: 50 };
const relayed = { status: 200, headers: {}, body: Buffer.from('relayed') };

/** When the database says that the lists were read. */
let inDatabase: number | undefined;
let freshness: AccountFreshness;
const run = vi.fn<() => Promise<boolean>>();
let account: MirroredAccount;

beforeEach(() => {
  inDatabase = undefined;
  freshness = createAccountFreshness(
    async () => ({
      refreshedAt: inDatabase,
      age: Date.now() - (inDatabase ?? 0),
      writtenAt: undefined,
      isLeased: false,
    }),
    () => {},
  );
  run.mockReset().mockResolvedValue(false);
  account = {
    id: 1,
    budget: createBudget(0),
    activateInTurn: (activate) => activate(),
    freshness,
    skipped: () => 0,
    progress: 3,
    isUnreachable: false,
    touch: () => undefined,
    arrival: () => run(),
    noteWrite: async () => {},
    refresh: () => run(),
    add() {},
    remove() {},
    upstreamFor: () => undefined,
    close: async () => {},
  };
});

/** What becomes of a request, with the status of a response that is given in place of what is here. */
async function request(endpoint: 'rest' | 'graphql', headers: Record<string, string> = {}, isRelayed = true) {
  const incoming = Object.assign(new IncomingMessage(new Socket()), { headers, url: '/' });
  const opened = openExchange(incoming, new ServerResponse(incoming), { failed() {}, ended() {} });
  const exchange = { ...opened, endpoint };
  const relay = isRelayed ? async () => relayed : undefined;
  const response = await waitUntilFresh(exchange, account, { waits, relay });
  const { status, headers: said } = response ?? {};
  return response === relayed
    ? 'relayed'
    : { status, age: exchange.headers.Age, retryAfter: said?.['Retry-After'] };
}

const here = { status: undefined, age: '0', retryAfter: undefined };
const notHere = { status: 503, age: undefined, retryAfter: '5' };

describe('a request about an account', () => {
  it('that is here is let through, as fresh as it is', async () => {
    freshness.set(Date.now() - 7_900, { began: 0, hasChanges: false, isPart: false });
    for (const endpoint of ['rest', 'graphql'] as const)
      expect(await request(endpoint)).toEqual({ ...here, age: '7' });
    expect(run).not.toHaveBeenCalled();
  });

  it('that is not here is relayed or has to come again, and waits a while for that to be over', async () => {
    expect(await request('rest')).toBe('relayed');
    expect(await request('rest', {}, false)).toEqual(notHere);
    expect(await request('graphql')).toEqual(notHere);
    run.mockImplementation(async () => {
      freshness.set(Date.now(), { began: 0, hasChanges: true, isPart: false });
      return true;
    });
    expect(await request('graphql')).toEqual(here);
  });

  it('of which clients were shown more than the first run has read goes on being relayed, until a run that began later', async () => {
    const began = Date.now() - 1_000;
    expect(await request('rest')).toBe('relayed');
    freshness.set(began, { began: 0, hasChanges: true, isPart: false });
    expect(await request('rest')).toBe('relayed');
    // Whoever was shown nothing before is not kept waiting.
    expect(await request('graphql')).toEqual({ ...here, age: '1' });
    freshness.set(Date.now(), { began: 0, hasChanges: false, isPart: false });
    expect(await request('rest')).toEqual(here);
  });

  it('that is forgotten while it waits for a refresh is relayed, or has to come again', async () => {
    const responses = [];
    for (const [endpoint, isRelayed] of [
      ['rest', true],
      ['rest', false],
      ['graphql', true],
    ] as const) {
      inDatabase = Date.now() - 1_000;
      await freshness.reload();
      run.mockImplementation(async () => {
        inDatabase = undefined;
        await freshness.reload();
        return false;
      });
      responses.push(await request(endpoint, { 'cache-control': 'no-cache' }, isRelayed));
    }
    expect(responses).toEqual(['relayed', notHere, notHere]);
  });

  it('of which something was written that is not read yet is relayed, or has it read, or has to come again', async () => {
    freshness.set(Date.now() - 1_000, { began: 0, hasChanges: false, isPart: false });
    freshness.noteWrite();
    expect(await request('rest')).toBe('relayed');
    expect(await request('graphql')).toEqual(notHere);
    expect(run).toHaveBeenCalledTimes(1);
    run.mockImplementation(async () => {
      freshness.set(Date.now(), { began: 0, hasChanges: true, isPart: false });
      return true;
    });
    expect(await request('graphql')).toEqual(here);
  });

  it('does not wait for what the budget does not allow, nor for what does not come', async () => {
    freshness.set(Date.now() - 1_000, { began: 0, hasChanges: false, isPart: false });
    account.budget.pauseUntil(Date.now() + 60_000);
    expect(await request('graphql', { 'cache-control': 'no-cache' })).toEqual({ ...here, age: '1' });
    expect(run).not.toHaveBeenCalled();
    account = { ...account, budget: createBudget(0) };
    run.mockImplementation(() => new Promise(() => {}));
    expect(await request('graphql', { 'cache-control': 'no-cache' })).toEqual({ ...here, age: '1' });
    expect(run).toHaveBeenCalledTimes(1);
  });
});
