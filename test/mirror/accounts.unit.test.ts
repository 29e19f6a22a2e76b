/** What the accounts of a gateway share: what is logged of the upstream. */

import pg from 'pg';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
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
    onChanged() {},
    onTokenStatus() {},
  });
});
afterEach(() => accounts.close());

it('an unavailable upstream is logged once, however many requests fail, and again when it fails in another way', () => {
  for (let times = 0; times < 400; times++)
    accounts.noteFailure(new UpstreamError('no', { failure: 'responded with 503' }));
  expect(lines).toHaveLength(1);
  accounts.noteFailure(new UpstreamError('no', { failure: 'cannot be reached' }));
  expect(lines).toHaveLength(2);
  expect(accounts.status()).toContain('cannot be reached');
});
