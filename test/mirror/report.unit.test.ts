/** The report of a run, and the next step that is printed after it. */

import { describe, expect, it } from 'vitest';
import { user } from '../../src/mirror/account.ts';
import { describeChanges, nextStep } from '../../src/mirror/report.ts';
import type { SyncReport } from '../../src/mirror/sync.ts';

const none = { fetched: 0, created: 0, updated: 0, unchanged: 0, gone: 0, skipped: 0 };
const account = user.parse({ id: 1, username: 'demo', subscriptionTier: 'ultra' });
const report = (countsByKind: SyncReport['countsByKind']): SyncReport => ({
  account,
  countsByKind,
  notes: [],
  requests: 1,
  began: new Date(0),
});

const changed = report(
  new Map([
    ['user', { ...none, fetched: 1, unchanged: 1 }],
    ['DTT devices', { fetched: 12345678, created: 1, updated: 2, unchanged: 3, gone: 4, skipped: 5 }],
    ['lock templates', { ...none, gone: 1 }],
    ['OSSM devices', { ...none, fetched: 2, skipped: 2 }],
  ]),
);

describe('the report of a run', () => {
  it('names what has changed, and nothing else', () => {
    expect(describeChanges(changed)).toBe(
      'DTT devices: 1 created, 2 updated, 4 gone; lock templates: 1 gone',
    );
    expect(describeChanges(report(new Map([['user', { ...none, unchanged: 1, skipped: 1 }]])))).toBe(
      undefined,
    );
  });
});

describe('the next step after a run', () => {
  const place = { DATABASE_URL: undefined, DATA_DIR: '.data' };

  it.each([
    ['demo', 'demo'],
    ['$(reboot)', "'$(reboot)'"],
    ["it's", "'it'\\''s'"],
    ['a\nb\u001b', "'a b '"],
  ])('is a command with the user name quoted for the shell: %j', (username, word) => {
    expect(nextStep({ ...account, username }, place)).toBe(
      `npx dovetail token create --user ${word} --name mirror`,
    );
  });

  it.each([
    ['free', '"free"'],
    ['ul\ntra', '"ul tra"'],
    [undefined, '"none"'],
  ])('is an explanation that a token cannot be used with the tier %j', (subscriptionTier, said) => {
    expect(nextStep({ ...account, username: 'a\nb', subscriptionTier }, place)).toBe(
      `A token needs the tier ultra, but the upstream says that "a b" has ${said}: the mirror cannot be queried until it says otherwise.`,
    );
  });
});
