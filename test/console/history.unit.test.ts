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

const queryOf = (href: string) => Object.fromEntries(new URL(href, 'http://localhost').searchParams);

describe('what the history shows is in its address', () => {
  it.each<[HistoryAddress, string]>([
    [defaults, ''],
    [{ ...defaults, range: 'all' }, '?last=all'],
    [{ ...defaults, range: 30, by: 'WEEK' }, '?last=30&by=week'],
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
    [{ ...defaults, before: 'a+b/c==' }, '?before=a%2Bb%2Fc%3D%3D'],
  ])('%j', (address, query) => {
    expect(hrefOf(address)).toBe(`/console/history${query}`);
    expect(readAddress(queryOf(hrefOf(address)))).toEqual(address);
  });

  it.each([
    'last=12',
    'last=',
    'from=2026-02-30',
    'to=tomorrow&from=',
    'by=hour&figure=speed',
    'by=__proto__&passed=maybe',
    'trainer=0&program=1e3',
    'trainer=-1&program=2147483648',
    'trainer=99999999999999999999&program=01',
    'after=%00&before=%20',
    `after=${'a'.repeat(2_001)}`,
    'something=else',
  ])('what cannot be meant is left out of it: %s', (query) => {
    expect(readAddress(queryOf(`/?${query}`))).toEqual(defaults);
  });

  it('a range that ends before it begins is open', () => {
    expect(readAddress({ from: '2026-03-02', to: '2026-03-01' }).range).toEqual({
      from: '2026-03-02',
      to: undefined,
    });
  });

  it('of two cursors the one is taken that leads on', () => {
    expect(readAddress({ after: 'a', before: 'b' })).toEqual({ ...defaults, after: 'a' });
  });

  it('the list begins anew when what it has is changed', () => {
    expect(change({ ...defaults, after: 'a' }, { trainer: 3 })).toEqual({ ...defaults, trainer: 3 });
  });
});

describe('the condition for sessions', () => {
  const days = { from: undefined, to: undefined };

  it.each<[Partial<HistoryAddress>, object]>([
    [{}, {}],
    [{ trainer: 3 }, { trainerId: { eq: 3 } }],
    [{ program: 5 }, { templateId: { eq: 5 } }],
    [{ program: 'none' }, { templateId: { isNull: true } }],
    [{ passed: 'yes' }, { passed: { eq: true } }],
    [{ passed: 'no' }, { passed: { eq: false } }],
    [{ passed: 'unknown' }, { passed: { isNull: true } }],
  ])('%j', (address, condition) => {
    expect(filterOf(days, { ...defaults, ...address })).toEqual(condition);
  });

  it('takes in the last day as a whole', () => {
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
    [365, { from: '2025-11-23', to: '2026-11-22' }],
    ['all', { from: undefined, to: undefined }],
  ] as const)('of %s ends today', (range, days) => {
    expect(daysOf(range, '2026-11-22')).toEqual(days);
  });

  const extent = { firstSessionAt: '2020-01-01T12:00:00Z', lastSessionAt: '2020-01-10T12:00:00Z' };
  it.each([
    [{ from: '2026-01-01', to: '2026-01-31' }, {}, 31],
    [{ from: undefined, to: undefined }, extent, 10],
    [{ from: '2020-01-09', to: undefined }, extent, 2],
    [{ from: '2021-01-01', to: undefined }, extent, 1],
    [{ from: undefined, to: '2020-01-31' }, extent, 31],
    [{ from: undefined, to: undefined }, {}, undefined],
    [{ from: undefined, to: undefined }, { ...extent, lastSessionAt: 'infinity' }, Number.POSITIVE_INFINITY],
  ])('%j of sessions %j has %s days', (days, sessions, length) => {
    expect(lengthOf(days, sessions)).toBe(length);
  });

  it.each([
    [1, undefined, 'DAY'],
    [30, undefined, 'DAY'],
    [90, undefined, 'WEEK'],
    [366, undefined, 'WEEK'],
    [3_650, undefined, 'MONTH'],
    [366, 'DAY', 'DAY'],
    [367, 'DAY', 'WEEK'],
    [90, 'MONTH', 'MONTH'],
    [3_650, 'WEEK', 'MONTH'],
  ] as const)('%s days, %s chosen by hand, are shown by %s', (days, chosen, period) => {
    expect(choosePeriod(days, chosen)).toBe(period);
  });

  it('never has more groups than the gateway gives', () => {
    // From a Sunday on, the first week has a day of the range.
    const weeks = (days: number) => 1 + Math.ceil((days - 1) / 7);
    for (let days = 1; days < 4_000; days++) {
      if (isPossible('DAY', days)) expect(days).toBeLessThanOrEqual(366);
      if (isPossible('WEEK', days)) expect(weeks(days)).toBeLessThanOrEqual(366);
    }
  });
});
