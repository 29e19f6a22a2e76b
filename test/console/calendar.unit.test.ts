import { afterAll, expect, it } from 'vitest';
import {
  addDays,
  countDays,
  dayOf,
  lastDayOf,
  parseDay,
  startOf,
} from '../../console/src/history/calendar.ts';

const zoneBefore = process.env.TZ;
afterAll(() => inZone(zoneBefore, () => {}));

/** Calls the function with the time zone that `Date` uses set to this one. */
function inZone<Value>(zone: string | undefined, act: () => Value): Value {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
  return act();
}

it.each([
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z'],
  ['Europe/Berlin', '2026-10-26', '2026-10-25T23:00:00.000Z'],
  ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z'],
  // There was no midnight: the clocks went forward from 23:59:59 to 01:00.
  ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z'],
  // Midnight occurred twice: at 01:00 the clocks went back to 00:00.
  ['America/Havana', '2026-11-01', '2026-11-01T04:00:00.000Z'],
  // A day that the time zone skipped begins when the next day begins.
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z'],
])('a day begins at its first instant in the time zone of the browser: %s %s', (zone, day, instant) => {
  expect(inZone(zone, () => startOf(day).toISOString())).toBe(instant);
});

it.each(['America/Sao_Paulo', 'America/Havana', 'Asia/Beirut', 'Australia/Lord_Howe', 'Pacific/Kiritimati'])(
  'every day of two years begins at its first instant in %s',
  (zone) => {
    // Formats the date independently of the code that is tested.
    const formatter = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
    inZone(zone, () => {
      for (let day = '2018-01-01'; day < '2020-01-01'; day = addDays(day, 1)) {
        const start = startOf(day).getTime();
        expect(formatter.format(start)).toBe(day);
        expect(formatter.format(start - 1)).toBe(addDays(day, -1));
        expect(dayOf(new Date(start))).toBe(day);
      }
    });
  },
);

it.each([
  ['2024-02-29', '2024-02-29'],
  ['2026-02-29', undefined],
  ['2026-13-01', undefined],
  ['0202-02-17', undefined],
  ['3000-01-01', undefined],
  ['2026-2-17', undefined],
  ['2026-02-17T00:00', undefined],
  [undefined, undefined],
])('parses %s as a day: %s', (text, day) => {
  expect(parseDay(text)).toBe(day);
});

it('has no day for an infinite date', () => {
  expect(dayOf(new Date('Infinity'))).toBeUndefined();
});

it.each([
  ['2026-03-28', 2, '2026-03-30'],
  ['2024-02-28', 1, '2024-02-29'],
])('%s plus %s days is %s in every time zone', (day, count, later) => {
  for (const zone of ['UTC', 'Europe/Berlin', 'Pacific/Apia'])
    inZone(zone, () => {
      expect(addDays(day, count)).toBe(later);
      expect(countDays(day, later)).toBe(count + 1);
    });
});

it.each([
  ['2026-05-04', 'DAY', '2026-05-04'],
  ['2026-12-28', 'WEEK', '2027-01-03'],
  ['2024-02-01', 'MONTH', '2024-02-29'],
  ['2026-12-01', 'MONTH', '2026-12-31'],
] as const)('the period from %s by %s ends on %s', (first, period, last) => {
  expect(lastDayOf(first, period)).toBe(last);
});
