/** Measures how much the announcement of changes slows down writers. */

import { median } from './compare.ts';
import type { BenchDatabase } from './database.ts';
import { type Feed, type FeedOptions, feeds, startListening, switchTo } from './feeds.ts';
import type { ServerProcess } from './processes.ts';
import { serverProcesses, usedBy } from './serverTime.ts';
import type { Table } from './table.ts';
import { openWriters, type Writers } from './writers.ts';

/** The numbers of gateways that listen. */
const listeners = [0, 1, 8] as const;

/** The measurement of one case, and that without triggers directly before and after it, with the same gateways idle. */
interface Round {
  readonly perSecond: number;
  readonly silent: number;
  readonly ratio: number;
  /** Processor time for one commit, in microseconds: of all processes of PostgreSQL, of those that decode the log, and of one gateway. */
  readonly server: number;
  readonly silentServer: number;
  readonly decoding: number;
  readonly gateway: number;
}

export async function measureWriters(options: FeedOptions): Promise<Table> {
  const { database, settings, progress } = options;
  const writers = await openWriters(database.url, settings.connections);
  const measured = new Map<string, Round[]>();
  try {
    await write(options, writers, []);
    for (let round = 0; round < settings.rounds; round++) {
      for (const [title, made] of await measureRound(options, writers, round)) {
        measured.set(title, [...(measured.get(title) ?? []), ...made]);
      }
      progress(`writers: round ${round + 1} of ${settings.rounds}`);
    }
  } finally {
    writers.close();
  }
  return {
    title: `${settings.connections} connections that update single rows, fsync on: commits a second, and µs of processor time for each`,
    rows: [
      [
        '',
        'commits/s',
        'without triggers',
        'ratio',
        'middle half',
        'PostgreSQL, µs',
        'without triggers, µs',
        'decoding, µs',
        'a gateway, µs',
      ],
      ...[...measured].map(([title, rounds]) => rowOf(title, rounds)),
    ],
  };
}

function rowOf(title: string, rounds: readonly Round[]): string[] {
  const of = (key: keyof Round) => median(rounds.map((round) => round[key]));
  const ratios = rounds.map(({ ratio }) => ratio).sort((one, other) => one - other);
  const at = (share: number) => (ratios[Math.round((ratios.length - 1) * share)] ?? Number.NaN).toFixed(2);
  return [
    title,
    Math.round(of('perSecond')).toLocaleString('en'),
    Math.round(of('silent')).toLocaleString('en'),
    of('ratio').toFixed(2),
    `${at(0.25)} to ${at(0.75)}`,
    of('server').toFixed(0),
    of('silentServer').toFixed(0),
    of('decoding').toFixed(0),
    of('gateway').toFixed(0),
  ];
}

/** Every combination of a feed and a number of gateways. */
async function measureRound(
  options: FeedOptions,
  writers: Writers,
  round: number,
): Promise<[string, Round[]][]> {
  const cases: [string, Round[]][] = [];
  for (const feed of round % 2 === 0 ? feeds : [...feeds].reverse()) {
    await switchTo(options.database, feed);
    const gateways: ServerProcess[] = [];
    try {
      for (const count of listeners) {
        const missing = Array.from({ length: count - gateways.length }, () => startListening(options, feed));
        gateways.push(...(await Promise.all(missing)));
        if (count > 0) for (let time = 0; time < warmUps; time++) await write(options, writers, gateways);
        cases.push([titleOf(feed, count), await measureCase(options, writers, gateways)]);
      }
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.stop()));
    }
  }
  return cases;
}

const turns = 3;
/** How often is written before a measurement, until most of the code of new gateways is compiled. */
const warmUps = 4;

/** Alternates with measurements without triggers, since a shared machine is not equally fast all the time. */
async function measureCase(
  options: FeedOptions,
  writers: Writers,
  gateways: readonly ServerProcess[],
): Promise<Round[]> {
  const silent = async () => {
    await switchTriggers(options.database, 'DISABLE');
    const made = await write(options, writers, gateways);
    await switchTriggers(options.database, 'ENABLE ALWAYS');
    return made;
  };
  const rounds: Round[] = [];
  let before = await silent();
  for (let turn = 0; turn < turns; turn++) {
    const announced = await write(options, writers, gateways);
    const after = await silent();
    const perSecond = (before.perSecond + after.perSecond) / 2;
    const server = (before.server + after.server) / 2;
    rounds.push({
      ...announced,
      silent: perSecond,
      ratio: announced.perSecond / perSecond,
      silentServer: server,
    });
    before = after;
  }
  return rounds;
}

function titleOf(feed: Feed, count: number): string {
  const way = feed === 'notify' ? 'NOTIFY' : 'logical messages';
  return `${way}, ${count === 0 ? 'no gateway' : count === 1 ? '1 gateway' : `${count} gateways`}`;
}

function switchTriggers(database: BenchDatabase, state: 'ENABLE ALWAYS' | 'DISABLE') {
  return database.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = '"DttDevice"'::regclass AND NOT tgisinternal LOOP
      EXECUTE format('ALTER TABLE "DttDevice" ${state} TRIGGER %I', name);
    END LOOP; END $$`);
}

type Written = Pick<Round, 'perSecond' | 'server' | 'decoding' | 'gateway'>;

async function write(
  { database, settings }: FeedOptions,
  writers: Writers,
  gateways: readonly ServerProcess[],
): Promise<Written> {
  await database.query('VACUUM "DttDevice"');
  const { all, decoding } = await serverProcesses(database);
  const listening = gateways.map(({ pid }) => pid);
  const before = await Promise.all([all, decoding, listening].map(usedBy));
  const { commits, seconds } = await writers.run(settings.seconds / turns);
  const after = await Promise.all([all, decoding, listening].map(usedBy));
  const [server = 0, decoders = 0, own = 0] = after.map(
    (used, index) => (used - (before[index] ?? 0)) / commits,
  );
  return {
    perSecond: commits / seconds,
    server,
    decoding: decoders,
    gateway: own / Math.max(gateways.length, 1),
  };
}
