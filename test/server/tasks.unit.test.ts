/** Failures of work. */

import { expect, it, vi } from 'vitest';
import type { ResponseCache } from '../../src/http/responseCache.ts';
import type { OtherWork } from '../../src/http/task.ts';
import { joinHooks } from '../../src/server/hooks.ts';
import { createTaskRunner } from '../../src/server/pipeline.ts';
import { newExchange } from '../support/exchanges.ts';

it.each([true, false])(
  'work that fails and may have written something (%s) invalidates what is cached',
  async (hasWritten) => {
    const [onChanged, noteRead] = [vi.fn(), vi.fn()];
    // The parts of the response cache that are used.
    const responseCache = { noteRead } as unknown as ResponseCache;
    const run = createTaskRunner({ responseCache, hooks: joinHooks([]) }, () => false, onChanged);
    const fail = async () => Promise.reject(new Error('the acknowledgement was lost'));
    const work: OtherWork = { kind: 'other', run: fail, mayHaveWritten: hasWritten };
    const task = { cacheKey: undefined, prepare: () => work };
    await expect(run(newExchange(), { id: 7, tokenId: 1, scope: 'activate' }, task)).rejects.toThrow(
      'acknowledgement',
    );
    expect([onChanged.mock.calls, noteRead.mock.calls]).toEqual(hasWritten ? [[[7]], []] : [[], [[7]]]);
  },
);
