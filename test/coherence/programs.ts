/** Random programs of reads and writes, which run many steps at once. `SEED=…` generates the same ones again. */

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { favourites, reads } from './reads.ts';
import { levels, tables } from './writes.ts';

export const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
/** How long the tests run; by default a few seconds. */
export const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** These values half of the time: conflicts on the same data find more errors. */
const often = (some: number | readonly number[], others: fc.Arbitrary<number>) =>
  fc.oneof(fc.constantFrom(...[some].flat()), others);

export const where = {
  /** What is awaited before the step: nothing, a turn of the event loop, some milliseconds, or all steps in flight. */
  pause: fc.oneof(
    { weight: 5, arbitrary: fc.constant('none' as const) },
    { weight: 3, arbitrary: fc.constantFrom('turn' as const, 'moment' as const) },
    { weight: 2, arbitrary: fc.constant('all' as const) },
  ),
  account: often(0, fc.nat(1)),
  place: often(0, fc.nat(3)),
};
const held = fc.record({
  level: fc.constantFrom(...levels),
  before: fc.constantFrom(0, 5, 20),
  after: fc.constantFrom(0, 5, 20, 50),
});

const read = fc.record({
  ...where,
  kind: fc.constant('read' as const),
  request: often(favourites, fc.nat(reads.length - 1)),
  /** Sent so many times, one after the other: the response to the first may be cached for the next. */
  times: fc.integer({ min: 1, max: 5 }),
  /** Whether it is sent with the position of the account's last write. */
  sendsPosition: fc.boolean(),
});
const activate = fc.record({
  ...where,
  kind: fc.constant('activate' as const),
  template: fc.nat(2),
  endpoint: fc.constantFrom('REST' as const, 'GraphQL' as const),
});
const write = fc.record({
  ...where,
  kind: fc.constant('write' as const),
  table: fc.constantFrom(...tables),
  held,
});

export const usualSteps = fc.oneof(
  { weight: 24, arbitrary: read },
  { weight: 4, arbitrary: activate },
  { weight: 6, arbitrary: write },
);

export type StepOf<Steps> = Steps extends fc.Arbitrary<infer Step> ? Step : never;
export type UsualStep = StepOf<typeof usualSteps>;

type AnyStep = Pick<UsualStep, 'pause'>;

/** Runs the steps, several at once. */
async function run<Step extends AnyStep>(program: readonly Step[], take: (step: Step) => Promise<unknown>) {
  let inFlight: Promise<unknown>[] = [];
  for (const next of program) {
    if (next.pause === 'turn') await new Promise(setImmediate);
    if (next.pause === 'moment') await sleep(3);
    if (next.pause === 'all') await Promise.all(inFlight.splice(0));
    const taken = take(next);
    // A failure while others are awaited is reported when this one is awaited.
    taken.catch(() => {});
    inFlight.push(taken);
    // Limits the steps in flight to what the machine can handle.
    if (inFlight.length >= 16) inFlight = [Promise.all(inFlight)];
  }
  await Promise.all(inFlight);
}

/**
 * Runs programs of these steps one after the other.
 * @param goesOn whether there is to be another one.
 * @param check runs a program by the function that it is given, and checks what it has done.
 */
export async function runPrograms<Step extends AnyStep>(
  steps: fc.Arbitrary<Step>,
  take: (step: Step) => Promise<unknown>,
  goesOn: () => boolean,
  check: (run: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const programs = fc.array(steps, { minLength: 40, maxLength: 120, size: 'max' });
  const property = fc.asyncProperty(programs, (program) => check(() => run(program, take)));
  // Failures depend on timing, so shrinking a program would prove nothing. Nor is it fast-check's own time limit, which would
  // let a running program continue during the next test.
  for (let next = seed; goesOn(); next++)
    await fc.assert(property, { seed: next, numRuns: 1, endOnFailure: true });
}
