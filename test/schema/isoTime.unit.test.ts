import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isoTime } from '../../src/schema/isoTime.ts';

const earliest = Date.parse('0001-01-01T00:00:00.000Z');
const latest = Date.parse('9999-12-31T23:59:59.999Z');

it('formats a time like toISOString, limited to the years 1 to 9999', () => {
  const edges = [0, 86_400_000, 1_767_225_600_000, earliest, latest, 8.64e15, -8.64e15];
  const near = fc.tuple(fc.constantFrom(...edges), fc.integer({ min: -90_000_000, max: 90_000_000 }));
  const time = fc.oneof(
    near.map(([edge, away]) => Math.max(-8.64e15, Math.min(8.64e15, edge + away))),
    fc.date({ noInvalidDate: true }).map(Number),
  );
  const nearest = (date: Date) => new Date(Math.max(earliest, Math.min(latest, Number(date)))).toISOString();
  // More days than are cached, and each of them twice.
  const times = fc.array(time, { minLength: 1_500, maxLength: 1_500 });
  fc.assert(
    fc.property(times, (all) => {
      const dates = [...all, ...all].map((each) => new Date(each));
      expect(dates.map(isoTime)).toEqual(dates.map(nearest));
    }),
    { numRuns: 5, endOnFailure: true },
  );
});
