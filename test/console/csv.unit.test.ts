import { expect, it } from 'vitest';
import { type Cell, csvLine } from '../../console/src/history/csv.ts';
import { groupsAsCsv, sessionsAsCsv } from '../../console/src/history/exported.ts';

it.each<[Cell, string]>([
  ['plain', 'plain'],
  [null, ''],
  [true, 'true'],
  [-1, '-1'],
  ['with, comma', '"with, comma"'],
  ['with "quotes"', '"with ""quotes"""'],
  ['two\nlines', '"two\nlines"'],
  ['=1+1', "'=1+1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\r=1', '"\'\r=1"'],
])('the cell %j is written as %j, in a line that ends with CRLF as RFC 4180 requires', (cell, text) => {
  expect(csvLine(['a', cell])).toBe(`a,${text}\r\n`);
});

it('exports periods with a column for each figure, which is empty when it was not measured', () => {
  const group = {
    period: { date: '2026-03-01', from: '2026-02-28T23:00:00.000Z', to: '2026-03-01T23:00:00.000Z' },
    sessionCount: 2,
    passedSessionCount: 1,
    failedSessionCount: 0,
    averageGradePercent: null,
    totalPoints: 12.5,
  };
  expect(groupsAsCsv.head + groupsAsCsv.lines([group])).toBe(
    '\uFEFFdate,from,to,sessionCount,passedSessionCount,failedSessionCount,unknownSessionCount,averageGradePercent,totalPoints,totalRepsMeasured,' +
      'totalDurationMeasuredSeconds,totalDistanceTravelledMetres\r\n' +
      '2026-03-01,2026-02-28T23:00:00.000Z,2026-03-01T23:00:00.000Z,2,1,0,1,,12.5,,,\r\n',
  );
});

it('exports sessions with the sums of their segments, and with empty cells for what is unknown', () => {
  const unknown = {
    passed: null,
    points: null,
    gradePercent: null,
    repsMeasured: null,
    durationMeasuredSeconds: null,
    distanceTravelledMetres: null,
  };
  const session = {
    id: 'x',
    databaseId: 7,
    name: '=1',
    createdAt: '2026-03-01T10:00:00.000Z',
    passed: null,
    templateId: 5,
    template: null,
    trainerId: 3,
    trainer: { id: 'y', serialNumber: '1001' },
    segments: [
      { ...unknown, id: 'a', passed: true, points: 3, gradePercent: 80, repsMeasured: 20 },
      { ...unknown, id: 'b', gradePercent: 91, durationMeasuredSeconds: 60 },
    ],
  };
  expect(sessionsAsCsv.lines([session, { ...session, segments: [] }])).toBe(
    "7,2026-03-01T10:00:00.000Z,'=1,5,,3,1001,,2,1,3,85.5,20,60,\r\n7,2026-03-01T10:00:00.000Z,'=1,5,,3,1001,,0,0,,,,,\r\n",
  );
});
