import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSharedRuns } from '../../src/database/waiting.ts';

test('who calls at the very end of a run gets the next one, which others wait for', async () => {
  const seen = { begun: 0, current: 0, most: 0 };
  const runs = createSharedRuns(async () => {
    seen.most = Math.max(seen.most, ++seen.current);
    const number = ++seen.begun;
    await sleep(1);
    seen.current--;
    return number;
  });
  const again = runs.begin().then(() => runs.begin());
  const next = runs.begin();
  expect(await Promise.all([again, next])).toEqual([2, 2]);
  expect(seen).toMatchObject({ begun: 2, most: 1 });
});
