/** Measures statistics of a user with 100,000 sessions, by keys of the groups and selected figures. */

import { median } from './compare.ts';
import type { ServerProcess } from './processes.ts';
import type { Table } from './table.ts';
import { type Json, tokenOf } from './workloads.ts';

const ofSessions = 'sessionCount passedSessionCount firstSessionAt lastSessionAt';
const ofSegments =
  'segmentCount averageGradePercent totalPoints totalRepsMeasured totalDistanceTravelledMetres';
const day = 'by: [DAY], timeZone: "Europe/Berlin"';

const queries: readonly (readonly [title: string, query: string])[] = [
  ['all sessions', `{ dttSessionStats { total { ${ofSessions} } } }`],
  ['sessions by day', `{ dttSessionStats(${day}) { groups { period { date } ${ofSessions} } } }`],
  [
    'sessions by day, filled',
    `{ dttSessionStats(${day}, fill: true) { groups { period { date } ${ofSessions} } } }`,
  ],
  [
    'segments by day',
    `{ dttSessionStats(${day}) { groups { period { date } ${ofSessions} ${ofSegments} } } }`,
  ],
  [
    'by kind of segments',
    `{ dttSessionStats(by: [SEGMENT_TYPE]) { groups { rawSegmentType ${ofSessions} ${ofSegments} } } }`,
  ],
];

/** Sends a fixed number of requests one after the other, since some take long. The first of each is not counted. */
export async function measureStatistics(
  user: number,
  { url }: ServerProcess,
  rounds: number,
): Promise<Table> {
  const rows: string[][] = [];
  for (const [title, query] of queries) {
    const times: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const began = performance.now();
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${tokenOf(user)}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      const { errors }: Json = await response.json();
      if (errors) throw new Error(`${title}: ${JSON.stringify(errors)}`);
      if (round > 0) times.push(performance.now() - began);
    }
    rows.push([title, `${median(times).toFixed(0)} ms`]);
  }
  return { title: 'statistics of 100,000 sessions with 500,000 segments', rows: [['', 'time'], ...rows] };
}
