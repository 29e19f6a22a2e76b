/** The exports as comma-separated values. Columns have the names of the schema's fields; a sum has the name of what it adds up. */

import { averageGradeOf, passedCountOf, pointsOf, sumOf, unknownCountOf } from '../parts/sums.ts';
import { byteOrderMark, type Cell, csvLine } from './csv.ts';
import type { Group, Session } from './queries.ts';

type Column<Row> = readonly [name: string, cell: (row: Row) => Cell];

const groupColumns: readonly Column<Group>[] = [
  ['date', ({ period }) => period?.date],
  ['from', ({ period }) => period?.from],
  ['to', ({ period }) => period?.to],
  ['sessionCount', ({ sessionCount }) => sessionCount],
  ['passedSessionCount', ({ passedSessionCount }) => passedSessionCount],
  ['failedSessionCount', ({ failedSessionCount }) => failedSessionCount],
  ['unknownSessionCount', unknownCountOf],
  ['averageGradePercent', ({ averageGradePercent }) => averageGradePercent],
  ['totalPoints', ({ totalPoints }) => totalPoints],
  ['totalRepsMeasured', ({ totalRepsMeasured }) => totalRepsMeasured],
  ['totalDurationMeasuredSeconds', ({ totalDurationMeasuredSeconds }) => totalDurationMeasuredSeconds],
  ['totalDistanceTravelledMetres', ({ totalDistanceTravelledMetres }) => totalDistanceTravelledMetres],
];

const sessionColumns: readonly Column<Session>[] = [
  ['databaseId', ({ databaseId }) => databaseId],
  ['createdAt', ({ createdAt }) => createdAt],
  ['name', ({ name }) => name],
  ['templateId', ({ templateId }) => templateId],
  ['template', ({ template }) => template?.name],
  ['trainerId', ({ trainerId }) => trainerId],
  ['trainer', ({ trainer }) => trainer?.serialNumber],
  ['passed', ({ passed }) => passed],
  ['segmentCount', ({ segments }) => segments.length],
  ['passedSegmentCount', ({ segments }) => passedCountOf(segments)],
  ['points', ({ segments }) => pointsOf(segments)],
  ['averageGradePercent', ({ segments }) => averageGradeOf(segments)],
  ['repsMeasured', ({ segments }) => sumOf(segments, ({ repsMeasured }) => repsMeasured)],
  [
    'durationMeasuredSeconds',
    ({ segments }) => sumOf(segments, ({ durationMeasuredSeconds }) => durationMeasuredSeconds),
  ],
  [
    'distanceTravelledMetres',
    ({ segments }) => sumOf(segments, ({ distanceTravelledMetres }) => distanceTravelledMetres),
  ],
];

export const groupsAsCsv = linesOf(groupColumns);
export const sessionsAsCsv = linesOf(sessionColumns);

function linesOf<Row>(columns: readonly Column<Row>[]) {
  return {
    head: byteOrderMark + csvLine(columns.map(([name]) => name)),
    lines: (rows: readonly Row[]): string =>
      rows.map((row) => csvLine(columns.map(([, cell]) => cell(row)))).join(''),
  };
}
