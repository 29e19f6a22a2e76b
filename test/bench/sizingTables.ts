/** Prints the tables of `--sizing`, which docs/scaling.md shows. */

import { habits, type Measured, type Size } from './sizingModel.ts';

interface Rows {
  readonly title: string;
  readonly rows: readonly (readonly string[])[];
}

/** The labels of the measurements. */
export const labels: Readonly<Record<keyof Measured, string>> = {
  sessionBytes: 'a session on disk, with indexes, bytes',
  segmentBytes: 'a segment of it, bytes',
  userBytes: 'a user with all else of theirs, bytes',
  sessionWal: 'log of a session with 5 segments, bytes',
  activationWal: 'log of an activation, bytes',
  messageWal: 'log of an announcement, bytes',
  sessionServer: 'PostgreSQL for a session, µs',
  activationServer: 'PostgreSQL for an activation, µs',
  readServer: 'PostgreSQL for a response that is computed, µs',
  cachedGateway: 'a gateway for a response that is cached, µs',
  computedGateway: 'a gateway for a response that is computed, µs',
  activationGateway: 'a gateway for an activation, µs',
  messageGateway: 'a gateway for an announcement of another, µs',
  responseMemory: 'memory of a cached response, bytes',
  subscriptionMemory: 'memory of a subscription, bytes',
  processMemory: 'memory of a process without these, bytes',
};

/** The rounded figures: the second table is calculated from them, so that readers can verify it. */
export function roundAll(measured: Measured): Measured {
  const round = (value: number) => Number(value.toPrecision(2));
  const figures = Object.entries(measured).map(([key, value]) => [key, round(value)]);
  return Object.fromEntries(figures) as Measured; // the same keys
}

export function printMeasured(measured: Measured): Rows {
  const rows = Object.entries(labels).map(([key, label]) => [
    label,
    rounded(measured[key as keyof Measured]),
  ]);
  return { title: 'measured, each for one', rows: [['', ''], ...rows] };
}

/** The rows of the second table, each with its function of a size. */
const lines: readonly (readonly [label: string, of: (size: Size) => string])[] = [
  ['rows a day', ({ rowsPerDay }) => rounded(rowsPerDay)],
  ['disk after a year', ({ storage }) => bytes(storage)],
  ['transactions that write, a second', ({ writes }) => rounded(writes)],
  ['log, a second', ({ wal }) => bytes(wal)],
  ['announcements a second', ({ messages }) => rounded(messages)],
  ['requests a second', ({ requests }) => rounded(requests)],
  ['cores of the primary, for writes', ({ primaryCores }) => rounded(primaryCores)],
  ['cores of PostgreSQL, for reads', ({ readCores }) => rounded(readCores)],
  ['cores of gateways, for requests', ({ gatewayCores }) => rounded(gatewayCores)],
  ['of a core, for announcements, in each process', ({ feedShare }) => `${rounded(feedShare * 100)} %`],
  ['memory for cached responses', ({ cache }) => bytes(cache)],
  ['memory for subscriptions', ({ streams }) => bytes(streams)],
  ['until the numbers of segments are used up', ({ daysOfIds }) => time(daysOfIds)],
];

export function printSizes(sizes: readonly Size[]): Rows {
  return {
    title: `so many users, each with ${habits.sessions} session and ${habits.requests} requests a day, in the busiest minutes`,
    rows: [
      ['users', ...sizes.map(({ users }) => users.toLocaleString('en'))],
      ...lines.map(([label, of]) => [label, ...sizes.map(of)]),
    ],
  };
}

/** Two significant digits, which is as precise as an estimate can be. */
function rounded(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en', { maximumFractionDigits: 4 });
}

function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  const power = Math.max(0, Math.min(Math.floor(Math.log10(value) / 3), units.length - 1));
  return `${rounded(value / 1_000 ** power)} ${units[power]}`;
}

function time(days: number): string {
  return days < 1_000 ? `${rounded(days)} days` : `${rounded(days / 365)} years`;
}
