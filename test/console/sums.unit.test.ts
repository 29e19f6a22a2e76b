import { expect, it } from 'vitest';
import { gradeText, passedText, pointsOf, pointsText } from '../../console/src/parts/sums.ts';

it.each([
  [[], '–'],
  [[true, true, false], '2 of 3'],
  [[true, null, undefined, false], '1 of 4, 2 not known'],
])('says of segments that were passed as %j: %s', (passed, text) => {
  expect(passedText(passed.map((each) => ({ passed: each })))).toBe(text);
});

it('adds up the points that are known, and knows none of none', () => {
  expect(pointsOf([{ points: 3 }, { points: null }, {}, { points: 4 }])).toBe(7);
  expect(pointsOf([{ points: null }])).toBeNull();
  expect([pointsText([{ points: 0 }]), pointsText([])]).toEqual(['0', '–']);
});

it('averages the grades that are known', () => {
  expect(gradeText([{ gradePercent: 50 }, { gradePercent: null }, { gradePercent: 75 }])).toBe('62.5%');
  expect(gradeText([{}])).toBe('–');
});
