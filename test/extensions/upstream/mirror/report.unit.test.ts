/** The next step that is printed after a run. */

import { describe, expect, it } from 'vitest';
import { user } from '../../../../src/extensions/upstream/mirror/account.ts';
import { nextStep } from '../../../../src/extensions/upstream/mirror/report.ts';

const account = user.parse({ id: 1, username: 'demo', subscriptionTier: 'ultra' });
describe('the next step after a run', () => {
  const place = { DATABASE_URL: undefined, DATA_DIR: '.data' };

  it.each([
    ['demo', 'demo'],
    ['$(reboot)', "'$(reboot)'"],
    ["it's", "'it'\\''s'"],
    ['a\nb\u001b', "'a b '"],
  ])('is a command with the user name quoted for the shell: %j', (username, word) => {
    expect(nextStep({ ...account, username }, place)).toBe(
      `npx dovetail-gateway token create --user ${word} --name mirror`,
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
