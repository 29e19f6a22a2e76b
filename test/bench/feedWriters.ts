/** What it costs those who write that changes are announced. */

import { median } from './compare.ts';
import type { BenchDatabase } from './database.ts';
import { type Feed, type FeedOptions, feeds, startListening, switchTo } from './feeds.ts';
import type { ServerProcess } from './processes.ts';
import { serverProcesses, usedBy } from './serverTime.ts';
import type { Table } from './table.ts';
import { openWriters, type Writers } from './writers.ts';

/** How many gateways listen. */
const listeners = [0, 1, 8] as const;

/** What was measured of one case in one round. */
interface Round {
  readonly perSecond: number;
  /** The same divided by what the same round had without triggers. */
  readonly ratio: number;
  /** Processor time for one commit, in microseconds: of all processes of PostgreSQL, of those among them that decode, and of one gateway. */
  readonly server: number;
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
        const rounds = measured.get(title) ?? [];
        measured.set(title, [...rounds, made]);
      }
      progress(`writers: round ${round + 1} of ${settings.rounds}`);
    }
  } finally {
    writers.close();
  }
  return {
    title: `${settings.connections} connections that update single rows, fsync on`,
    rows: [
      [
        '',
        'commits/s',
        'of no triggers',
        'least, most',
        'PostgreSQL, µs',
        'of which decoding',
        'a gateway, µs',
      ],
      ...[...measured].map(([title, rounds]) => rowOf(title, rounds)),
    ],
  };
}

function rowOf(title: string, rounds: readonly Round[]): string[] {
  const of = (key: keyof Round) => median(rounds.map((round) => round[key]));
  const ratios = rounds.map(({ ratio }) => ratio);
  return [
    title,
    Math.round(of('perSecond')).toLocaleString('en'),
    of('ratio').toFixed(2),
    `${Math.min(...ratios).toFixed(2)}, ${Math.max(...ratios).toFixed(2)}`,
    of('server').toFixed(1),
    of('decoding').toFixed(1),
    of('gateway').toFixed(1),
  ];
}

/** Each case once. What there is without triggers is measured before and after the others, since a machine is not equally fast all the time. */
async function measureRound(
  options: FeedOptions,
  writers: Writers,
  round: number,
): Promise<[string, Round][]> {
  const cases: [string, Omit<Round, 'ratio'>][] = [];
  const silent = async () => {
    await switchTriggers(options.database, 'DISABLE');
    cases.push(['no triggers', await write(options, writers, [])]);
    await switchTriggers(options.database, 'ENABLE ALWAYS');
  };
  await silent();
  for (const feed of round % 2 === 0 ? feeds : [...feeds].reverse()) {
    const gateways: ServerProcess[] = [];
    try {
      await switchTo(options.database, feed);
      for (const count of [...listeners].sort((one, other) => other - one)) {
        while (gateways.length > count) await gateways.pop()?.stop();
        const missing = Array.from({ length: count - gateways.length }, () => startListening(options, feed));
        gateways.push(...(await Promise.all(missing)));
        cases.push([titleOf(feed, count), await write(options, writers, gateways)]);
      }
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.stop()));
    }
  }
  await silent();
  const none = cases.filter(([title]) => title === 'no triggers').map(([, { perSecond }]) => perSecond);
  const mean = none.reduce((sum, each) => sum + each, 0) / none.length;
  return cases.map(([title, made]) => [title, { ...made, ratio: made.perSecond / mean }]);
}

function titleOf(feed: Feed, count: number): string {
  const way = feed === 'notify' ? 'NOTIFY' : 'logical messages';
  return `${way}, ${count === 0 ? 'nobody listens' : count === 1 ? '1 gateway' : `${count} gateways`}`;
}

function switchTriggers(database: BenchDatabase, state: 'ENABLE ALWAYS' | 'DISABLE') {
  return database.query(`DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = '"DttDevice"'::regclass AND NOT tgisinternal LOOP
      EXECUTE format('ALTER TABLE "DttDevice" ${state} TRIGGER %I', name);
    END LOOP; END $$`);
}

async function write(
  { database, settings }: FeedOptions,
  writers: Writers,
  gateways: readonly ServerProcess[],
): Promise<Omit<Round, 'ratio'>> {
  await database.query('VACUUM "DttDevice"');
  const { all, decoding } = await serverProcesses(database);
  const listening = gateways.map(({ pid }) => pid);
  const before = await Promise.all([all, decoding, listening].map(usedBy));
  const { commits, seconds } = await writers.run(settings.seconds);
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
