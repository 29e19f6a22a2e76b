/** The quota of what each user may have open. */

import { expect, it } from 'vitest';
import { createUserQuota } from '../../src/graphql/userQuota.ts';

const [alice, bob] = [1, 2];

it('a user has as many as the limit at a time, whatever others have, and one more for each that is released', () => {
  const quota = createUserQuota(3);
  const fill = (userId: number) => [1, 2, 3, 4].map(() => quota.acquire(userId));
  expect(fill(alice)).toEqual([true, true, true, false]);
  expect(fill(bob)).toEqual([true, true, true, false]);
  quota.release(alice);
  expect([quota.acquire(alice), quota.acquire(alice)]).toEqual([true, false]);
  for (let each = 0; each < 3; each++) quota.release(alice);
  expect(fill(alice)).toEqual([true, true, true, false]);
  expect(quota.acquire(bob)).toBe(false);
});
