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
  ['3000-01-01', undefined],
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
  ['2026-12-28', 'WEEK', '2027-01-03'],
  ['2024-02-01', 'MONTH', '2024-02-29'],
] as const)('the period from %s by %s ends on %s', (first, period, last) => {
  expect(lastDayOf(first, period)).toBe(last);
});
