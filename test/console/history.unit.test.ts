import { describe, expect, it } from 'vitest';
import {
  change,
  defaults,
  filterOf,
  type HistoryAddress,
  hrefOf,
  readAddress,
} from '../../console/src/history/address.ts';
import { choosePeriod, daysOf, isPossible, lengthOf } from '../../console/src/history/range.ts';
import { base } from '../../console/src/paths.ts';

const queryOf = (href: string) => Object.fromEntries(new URL(href, 'http://localhost').searchParams);

describe('the address of the history', () => {
  it.each<[HistoryAddress, string]>([
    [defaults, ''],
    [
      {
        range: { from: '2026-01-01', to: '2026-03-31' },
        by: 'WEEK',
        figure: 'grade',
        trainer: 3,
        program: 5,
      },
      '?from=2026-01-01&to=2026-03-31&by=week&figure=grade&trainer=3&program=5',
    ],
    [{ ...defaults, range: { from: undefined, to: '2026-03-31' } }, '?to=2026-03-31'],
    [{ ...defaults, program: 'none', passed: 'no', after: 'MC8x' }, '?program=none&passed=no&after=MC8x'],
  ])('contains what is shown: %j', (address, query) => {
    expect(hrefOf(address)).toBe(`${base}/history${query}`);
    expect(readAddress(queryOf(hrefOf(address)))).toEqual(address);
  });

  it.each([
    'last=12',
    'from=2026-02-30',
    'by=hour&figure=speed',
    'trainer=99999999999999999999&program=01',
    'after=%00&before=%20',
    `after=${'a'.repeat(2_001)}`,
  ])('is read without values that are invalid: %s', (query) => {
    expect(readAddress(queryOf(`/?${query}`))).toEqual(defaults);
  });

  it('is read without the end of a range that is before its beginning', () => {
    expect(readAddress({ from: '2026-03-02', to: '2026-03-01' }).range).toEqual({
      from: '2026-03-02',
      to: undefined,
    });
  });

  it('is read with `after` alone when it has both cursors', () => {
    expect(readAddress({ after: 'a', before: 'b' })).toEqual({ ...defaults, after: 'a' });
  });

  it('loses its cursor when a filter is changed, so that the list begins with its first page', () => {
    expect(change({ ...defaults, after: 'a' }, { trainer: 3 })).toEqual({ ...defaults, trainer: 3 });
  });
});

describe('the filter for sessions', () => {
  const days = { from: undefined, to: undefined };

  it.each<[Partial<HistoryAddress>, object]>([
    [{}, {}],
    [{ trainer: 3 }, { trainerId: { eq: 3 } }],
    [{ program: 5 }, { templateId: { eq: 5 } }],
    [{ program: 'none' }, { templateId: { isNull: true } }],
    [{ passed: 'yes' }, { passed: { eq: true } }],
    [{ passed: 'unknown' }, { passed: { isNull: true } }],
  ])('of the address %j is %j', (address, condition) => {
    expect(filterOf(days, { ...defaults, ...address })).toEqual(condition);
  });

  it('includes the whole of the last day', () => {
    const { createdAt } = filterOf({ from: '2026-03-01', to: '2026-03-31' }, defaults);
    expect(createdAt).toEqual({
      gte: new Date(2026, 2, 1).toISOString(),
      lt: new Date(2026, 3, 1).toISOString(),
    });
    expect(filterOf({ from: undefined, to: '2026-12-31' }, defaults)).toEqual({
      createdAt: { lt: new Date(2027, 0, 1).toISOString() },
    });
  });
});

describe('the range', () => {
  it.each([
    [30, { from: '2026-10-24', to: '2026-11-22' }],
    ['all', { from: undefined, to: undefined }],
  ] as const)('of the preset %s ends today', (range, days) => {
    expect(daysOf(range, '2026-11-22')).toEqual(days);
  });

  const extent = { firstSessionAt: '2020-01-01T12:00:00Z', lastSessionAt: '2020-01-10T12:00:00Z' };
  it.each([
    [{ from: '2026-01-01', to: '2026-01-31' }, {}, 31],
    [{ from: undefined, to: undefined }, extent, 10],
    [{ from: '2020-01-09', to: undefined }, extent, 2],
    [{ from: undefined, to: undefined }, {}, undefined],
    [{ from: undefined, to: undefined }, { ...extent, lastSessionAt: 'infinity' }, Number.POSITIVE_INFINITY],
  ])('%j with the first and last session at %j has %s days', (days, sessions, length) => {
    expect(lengthOf(days, sessions)).toBe(length);
  });

  it.each([
    [30, undefined, 'DAY'],
    [90, undefined, 'WEEK'],
    [367, 'DAY', 'WEEK'],
    [90, 'MONTH', 'MONTH'],
  ] as const)('of %s days, with the chosen period %s, is shown by %s', (days, chosen, period) => {
    expect(choosePeriod(days, chosen)).toBe(period);
  });

  it('is never split into more groups than the gateway returns', () => {
    // When the range begins on a Sunday, only one day of the first week is in it.
    const weeks = (days: number) => 1 + Math.ceil((days - 1) / 7);
    for (let days = 1; days < 4_000; days++) {
      if (isPossible('DAY', days)) expect(days).toBeLessThanOrEqual(366);
      if (isPossible('WEEK', days)) expect(weeks(days)).toBeLessThanOrEqual(366);
    }
  });
});
