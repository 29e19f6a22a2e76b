/** What the accounts of a gateway share: the budgets of those that have left, and what is logged of the upstream. */

import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { identifyByUsersMe } from '../../src/mirror/account.ts';
import { type Accounts, createAccounts } from '../../src/mirror/accounts.ts';
import { UpstreamError } from '../../src/upstream/upstream.ts';
import { createFakeFeed } from '../support/feed.ts';

let accounts: Accounts;
let lines: string[];

beforeEach(() => {
  lines = [];
  accounts = createAccounts({
    // No test here queries the database.
    pool: new pg.Pool({ connectionString: 'postgres://127.0.0.1:9/none' }),
    feed: createFakeFeed().feed,
    base: 'http://127.0.0.1:9/api/v1',
    timing: {},
    rate: 60,
    interval: 60_000,
    idle: 60_000,
    logger: pino({}, { write: (line: string) => void lines.push(line) }),
    identify: identifyByUsersMe,
    next: undefined,
    onChanged() {},
    onTokenStatus() {},
  });
});
afterEach(() => accounts.close());

it('the budget of an account still has its pause and its requests when the account has left and come back', () => {
  accounts.getOrAdd(1).budget.pauseFor(600_000);
  for (let times = 0; times < 60; times++) accounts.getOrAdd(2).budget.note();
  for (const id of [1, 2]) accounts.removeUnreachable(id);
  expect(accounts.figures().accounts).toBe(0);
  expect(accounts.getOrAdd(1).budget.delayFor(1)).toBeGreaterThan(590_000);
  expect(accounts.getOrAdd(2).budget.available()).toBe(0);
  expect(accounts.getOrAdd(3).budget.delayFor(1)).toBe(0);
});

it('the budget of an account that stayed for hours still has its latest requests when the account comes back', () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  try {
    const { budget } = accounts.getOrAdd(1);
    vi.advanceTimersByTime(2 * 60 * 60_000);
    for (let times = 0; times < 60; times++) budget.note();
    accounts.removeUnreachable(1);
    expect(accounts.getOrAdd(1).budget.available()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it('an unavailable upstream is logged once, however many requests fail, and again when it fails in another way', () => {
  for (let times = 0; times < 400; times++)
    accounts.noteFailure(new UpstreamError('no', { failure: 'responded with 503' }));
  expect(lines).toHaveLength(1);
  accounts.noteFailure(new UpstreamError('no', { failure: 'cannot be reached' }));
  expect(lines).toHaveLength(2);
  expect(accounts.status()).toContain('cannot be reached');
});
