import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isoTime } from '../../src/schema/isoTime.ts';

it('a time is written as toISOString writes it, in any year, on many days by turns', () => {
  const edges = [
    0, 86_400_000, 1_767_225_600_000, 253_402_300_800_000, -62_167_219_200_000, 8.64e15, -8.64e15,
  ];
  const near = fc.tuple(fc.constantFrom(...edges), fc.integer({ min: -90_000_000, max: 90_000_000 }));
  const time = fc.oneof(
    near.map(([edge, away]) => Math.max(-8.64e15, Math.min(8.64e15, edge + away))),
    fc.date({ noInvalidDate: true }).map(Number),
  );
  // More days than are remembered, and each again.
  const times = fc.array(time, { minLength: 1_500, maxLength: 1_500 });
  fc.assert(
    fc.property(times, (all) => {
      const dates = [...all, ...all].map((each) => new Date(each));
      expect(dates.map(isoTime)).toEqual(dates.map((date) => date.toISOString()));
    }),
    { numRuns: 5, endOnFailure: true },
  );
});

it('a date that is none is not written', () => {
  expect(() => isoTime(new Date(Number.NaN))).toThrow(RangeError);
});
