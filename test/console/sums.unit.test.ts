import { expect, it } from 'vitest';
import { gradeText, passedText, pointsOf, pointsText } from '../../console/src/parts/sums.ts';

it.each([
  [[], '–'],
  [[true, true, false], '2 of 3'],
  [[true, null, undefined, false], '1 of 2 scored'],
  [[null], '–'],
])('counts the segments with a result: %j is %s', (passed, text) => {
  expect(passedText(passed.map((each) => ({ passed: each })))).toBe(text);
});

it('adds up the known points, and has no sum when none are known', () => {
  expect(pointsOf([{ points: 3 }, { points: null }, {}, { points: 4 }])).toBe(7);
  expect(pointsOf([{ points: null }])).toBeNull();
  expect([pointsText([{ points: 0 }]), pointsText([])]).toEqual(['0', '–']);
});

it('averages the known grades, and has no average when none are known', () => {
  expect(gradeText([{ gradePercent: 50 }, { gradePercent: null }, { gradePercent: 75 }])).toBe('62.5%');
  expect(gradeText([{}])).toBe('–');
});
