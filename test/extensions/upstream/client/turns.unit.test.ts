/** How many requests of clients are in flight, of an account and of all, and how long the others wait. */

import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { createSignal } from '../../../../src/database/waiting.ts';
import { createTurns, mostOnDemand } from '../../../../src/extensions/upstream/client/turns.ts';
import { UpstreamBusy } from '../../../../src/extensions/upstream/client/upstream.ts';

const tooMany = new UpstreamBusy('Too many requests wait', { failure: 'has too many requests' }, 1);
const outcomeOf = (sending: Promise<string>) =>
  sending.catch((error: object) => (isDeepStrictEqual({ ...error }, { ...tooMany }) ? `${error}` : error));

it('all accounts together have a limit of reads and one of writes, and of those that wait', async () => {
  const createInTurn = createTurns(60_000);
  const { promise: released, settle: release } = createSignal();
  let inFlight = 0;
  const send = async () => {
    inFlight++;
    await released;
    return 'sent';
  };
  const all: ReturnType<typeof outcomeOf>[] = [];
  for (let accounts = 0; accounts < 40; accounts++) {
    const inTurn = createInTurn();
    for (let count = 0; count < 16; count++)
      all.push(outcomeOf(inTurn('read', send)), outcomeOf(inTurn('write', send)));
    await setImmediate();
  }
  expect(inFlight).toBe(mostOnDemand);
  release();
  const outcomes = await Promise.all(all);
  // The last ones of either kind come from an account whose first requests still found room.
  const sent = outcomes.filter((outcome) => outcome === 'sent').length;
  expect([inFlight, outcomes.length]).toEqual([sent, 40 * 2 * 16]);
  expect(sent).toBeGreaterThanOrEqual(mostOnDemand + 2 * 200);
  expect(sent).toBeLessThan(mostOnDemand + 2 * (200 + 16));
  expect(outcomes.at(-1)).toBe(`${tooMany}`);
});

it('a request that has waited too long, for its account or for all, is never sent; one that has begun may take longer', async () => {
  const createInTurn = createTurns(100);
  let inFlight = 0;
  const { promise: released, settle: release } = createSignal();
  const hold = async () => {
    inFlight++;
    await released;
    return 'sent';
  };
  const busy = createInTurn();
  const begun = outcomeOf(busy('read', hold));
  for (let count = 1; count < 16; count++) void busy('read', hold);
  for (let accounts = 0; accounts < 6; accounts++) {
    const inTurn = createInTurn();
    for (let count = 0; count < 14; count++) void inTurn('read', hold);
  }
  await setImmediate();
  expect(inFlight).toBe(100);
  const waiting = [busy, createInTurn()].map((inTurn) => outcomeOf(inTurn('read', hold)));
  expect(await Promise.all(waiting)).toEqual([`${tooMany}`, `${tooMany}`]);
  expect(inFlight).toBe(100);
  expect(await Promise.race([begun, 'not over'])).toBe('not over');
  release();
  await setImmediate();
  expect(inFlight).toBe(100);
});
