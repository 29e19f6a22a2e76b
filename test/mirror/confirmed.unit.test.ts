/** What a run brings in only once the upstream has said again whose the token is. */

import { expect, it, vi } from 'vitest';
import { confirmedLists } from '../../src/mirror/confirmed.ts';
import type { Mirror } from '../../src/mirror/mirror.ts';

it.each([
  [7, 7, 0],
  [null, 7, 1],
  [7, null, 1],
])('is which template is active, where it was %j and is %j', async (before, now, asked) => {
  const confirm = vi.fn(async () => {
    throw new Error('it is another account');
  });
  const setActiveTemplate = vi.fn(async () => true);
  // As much of a mirror as is used.
  const mirror = { activeTemplate: async () => before, setActiveTemplate } as unknown as Mirror;
  const setting = confirmedLists(mirror, confirm).setActiveTemplate(now, 'version');
  if (asked === 0) expect(await setting).toBe(false);
  else await expect(setting).rejects.toThrow('it is another account');
  expect(confirm).toHaveBeenCalledTimes(asked);
  expect(setActiveTemplate).not.toHaveBeenCalled();
});
