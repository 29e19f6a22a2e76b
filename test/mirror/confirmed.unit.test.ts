/** What a run writes only once the upstream has confirmed again whose the token is. */

import { expect, it, vi } from 'vitest';
import { confirmedLists } from '../../src/mirror/confirmed.ts';
import type { Mirror } from '../../src/mirror/mirror.ts';

it.each([
  [7, 7, 0],
  [null, 7, 1],
  [7, null, 1],
])(
  'the active template that was %j and is set to %j has the token confirmed %i times',
  async (before, now, times) => {
    const confirm = vi.fn(async () => {
      throw new Error('it is another account');
    });
    const setActiveTemplate = vi.fn(async () => true);
    // Only these two methods of the mirror are called.
    const mirror = { activeTemplate: async () => before, setActiveTemplate } as unknown as Mirror;
    const setting = confirmedLists(mirror, confirm).setActiveTemplate(now, 'version');
    if (times === 0) expect(await setting).toBe(false);
    else await expect(setting).rejects.toThrow('it is another account');
    expect(confirm).toHaveBeenCalledTimes(times);
    expect(setActiveTemplate).not.toHaveBeenCalled();
  },
);
