/**
 * `npm run bench:live`: the cost of cached responses, compressed and plain, of the announcement of changes, and of subscriptions.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { median } from './compare.ts';
import { measureRates, measureSizes } from './compression.ts';
import type { BareResponse } from './contestants/bare.ts';
import { bare, dovetail, dovetailWithDefaults } from './contestants.ts';
import { type BenchDatabase, startDatabase } from './database.ts';
import { type Listener, listen } from './listeners.ts';
import { type LoadGenerator, type Measurement, startLoadGenerator } from './load.ts';
import { killAll, processorTime, residentMemory, type ServerProcess, startServer } from './processes.ts';
import { printRows, type Table } from './table.ts';
import { type BenchRequest, requestOf, tokenOf, workloads } from './workloads.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    connections: { type: 'string', default: '32' },
    only: { type: 'string', default: 'responses,sizes,compressed,load,subscriptions,sharing' },
  },
});
const rounds = Number(options.rounds ?? (options.quick ? 3 : 7));
const seconds = Number(options.seconds ?? (options.quick ? 1 : 3));

const subject = { user: 1, session: 1, template: 1 };

interface Setup {
  readonly database: BenchDatabase;
  readonly generator: LoadGenerator;
  readonly gateway: ServerProcess;
}

interface Case {
  readonly title: string;
  readonly request: BenchRequest;
  /** The lowest acceptable ratios: without log and metrics, and with the default settings. */
  readonly targets: readonly [quiet: number, withDefaults: number];
}

/**
 * Cached responses of a gateway without log and metrics, and of one with the default settings, each compared with a server that only
 * sends the same bytes.
 */
async function measureResponses({ database, generator, gateway }: Setup): Promise<Table> {
  const devices = workloads.find(({ name }) => name === 'devices');
  if (!devices) throw new Error('there is no workload for devices');
  const rest = requestOf(devices, 'rest', subject);
  const { headers } = await ask(gateway, rest);
  const cases: Case[] = [
    { title: 'REST', request: rest, targets: [0.7, 0.75] },
    { title: 'GraphQL by POST', request: requestOf(devices, 'graphql', subject), targets: [0.5, 0.6] },
    {
      title: '304',
      request: { ...rest, headers: { ...rest.headers, 'If-None-Match': headers.etag ?? '' } },
      targets: [0.75, 0.8],
    },
  ];
  const rows: string[][] = [
    ['', 'requests/s', 'of bare', 'ratio', 'target', 'CPU µs', 'of bare', 'ratio', 'p99 ms', 'of bare'],
  ];
  const command = dovetailWithDefaults();
  const withDefaults = await startServer({ ...command, env: { ...command.env, DATABASE_URL: database.url } });
  try {
    for (const each of cases) rows.push(...(await measureCase(each, [gateway, withDefaults], generator)));
  } finally {
    await withDefaults.stop();
  }
  return {
    title:
      'Cached responses, against a bare node:http server that sends the same bytes (ratios of 1 are equal)',
    rows,
  };
}

/** A row for the gateway without log and metrics, and one for the gateway with its default settings. */
async function measureCase(
  { title, request, targets }: Case,
  gateways: readonly [ServerProcess, ServerProcess],
  generator: LoadGenerator,
): Promise<string[][]> {
  // The first requests store the response in the cache.
  for (const gateway of gateways) for (let time = 0; time < 3; time++) await ask(gateway, request);
  const response = await ask(gateways[1], request);
  const other = await startServer({ ...bare(), env: { BARE_RESPONSE: JSON.stringify(response) } });
  try {
    const measured: [Round[], Round[], Round[]] = [[], [], []];
    const servers = [...gateways, other] as const;
    // Round 0 warms up, and is not counted.
    for (let round = 0; round <= rounds; round++) {
      for (const which of [0, 1, 2] as const) {
        const made = await measure(generator, servers[which], request, response.status);
        if (round > 0) measured[which].push(made);
      }
    }
    const [quiet, withDefaults, floor] = measured;
    return [
      rowOf(title, targets[0], quiet, floor),
      rowOf('  … with its defaults', targets[1], withDefaults, floor),
    ];
  } finally {
    await other.stop();
  }
}

function rowOf(title: string, target: number, own: readonly Round[], floor: readonly Round[]): string[] {
  const each = (list: readonly Round[], key: keyof Round) => median(list.map((round) => round[key]));
  const ratio = (key: keyof Round) =>
    median(own.map((round, index) => round[key] / (floor[index]?.[key] ?? Number.NaN)));
  return [
    title,
    thousands(each(own, 'requestsPerSecond')),
    thousands(each(floor, 'requestsPerSecond')),
    ratio('requestsPerSecond').toFixed(2),
    target.toFixed(2),
    each(own, 'used').toFixed(1),
    each(floor, 'used').toFixed(1),
    (1 / ratio('used')).toFixed(2),
    each(own, 'p99').toFixed(1),
    each(floor, 'p99').toFixed(1),
  ];
}

interface Round extends Measurement {
  /** Processor time of the server for one request, in microseconds. */
  readonly used: number;
}

async function measure(
  generator: LoadGenerator,
  { url, pid }: ServerProcess,
  request: BenchRequest,
  status: number,
): Promise<Round> {
  const connections = Number(options.connections);
  const before = await processorTime(pid);
  const measurement = await generator.run({
    url,
    workload: 'cached responses',
    endpoint: 'rest',
    request,
    seconds,
    connections,
    requests: connections,
    status,
  });
  const after = await processorTime(pid);
  return { ...measurement, used: ((after ?? Number.NaN) - (before ?? Number.NaN)) / measurement.requests };
}

async function ask(
  server: ServerProcess,
  { method, path, headers, body }: BenchRequest,
): Promise<BareResponse> {
  const response = await fetch(server.url + path, { method, headers, ...(body !== undefined && { body }) });
  const sent = Object.fromEntries(response.headers);
  // Headers that Node adds by itself.
  for (const name of ['date', 'connection', 'keep-alive']) delete sent[name];
  return { status: response.status, headers: sent, body: await response.text() };
}

interface Load {
  readonly title: string;
  readonly table: string;
  readonly insert: string;
  /** A condition that matches the rows, to delete them afterwards. */
  readonly loaded: string;
}

const many = 100_000;
const series = `generate_series(1, ${many}) n`;

const loads: readonly Load[] = [
  ...[1, 1_000].map((owners) => ({
    title: `lock templates of ${thousands(owners)} owners`,
    table: 'LockTemplate',
    insert: `("ownerId", name, duration) SELECT n % ${owners} + 1, 'bulk', n FROM ${series}`,
    loaded: `name = 'bulk'`,
  })),
  // The triggers look up the users who see these rows: owners by session, importers by template.
  ...[1, 5_000].map((templates) => ({
    title: `segments of ${thousands(templates)} templates`,
    table: 'DttTemplateSegment',
    insert: `("templateId", position, type, duration) SELECT n % ${templates} + 1, 1000 + n, 'bulk', 60 FROM ${series}`,
    loaded: `type = 'bulk'`,
  })),
  {
    title: 'segments of 20,000 sessions',
    table: 'TrainerSegment',
    insert: `("sessionId", type, "order") SELECT n % 20000 + 1, 'bounce', 1000 + n FROM ${series}`,
    loaded: `"order" > 1000`,
  },
  {
    title: 'templates of 1,000 owners',
    table: 'DttTemplate',
    insert: `("ownerId", "bubbleId", name, "targetDepth", "targetWindow") SELECT n % 1000 + 1, 'bulk-' || n, 'bulk', 1, 1 FROM ${series}`,
    loaded: `name = 'bulk'`,
  },
  {
    // The rare case, which waits for transactions that change the template.
    title: 'imports of 5,000 templates',
    table: 'DttLibraryEntry',
    insert: `("userId", "templateId", "importedAt") SELECT user_id, n, 'epoch' FROM generate_series(1, 20) user_id, generate_series(1, 5000) n ON CONFLICT DO NOTHING`,
    loaded: `"importedAt" = 'epoch'`,
  },
];

/** Inserts of 100,000 rows in one statement, with and without the triggers that announce them. */
async function measureLoad({ database }: Setup): Promise<Table> {
  const rows: string[][] = [['', 'announced, ms', 'silent, ms', 'ratio']];
  for (const { title, table, insert, loaded } of loads) {
    const switchTriggers = (state: 'ENABLE ALWAYS' | 'DISABLE') =>
      database.query(`DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = '"${table}"'::regclass AND NOT tgisinternal LOOP
          EXECUTE format('ALTER TABLE "${table}" ${state} TRIGGER %I', name);
        END LOOP; END $$`);
    const measured: [number[], number[]] = [[], []];
    for (let round = 0; round <= rounds; round++) {
      for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        await switchTriggers(which === 0 ? 'ENABLE ALWAYS' : 'DISABLE');
        const began = performance.now();
        await database.query(`INSERT INTO "${table}" ${insert}`);
        if (round > 0) measured[which].push(performance.now() - began);
        await switchTriggers('DISABLE');
        await database.query(`DELETE FROM "${table}" WHERE ${loaded}`);
        await database.query(`VACUUM "${table}"`);
      }
    }
    await switchTriggers('ENABLE ALWAYS');
    const [announced, silent] = measured;
    const ratios = announced.map((time, index) => time / (silent[index] ?? Number.NaN));
    rows.push([title, median(announced).toFixed(0), median(silent).toFixed(0), median(ratios).toFixed(2)]);
  }
  return { title: `${thousands(many)} rows in one statement`, rows };
}

const subscriptions = 1_000;

/** Subscriptions of different users on one process: their memory, and how long a change takes to reach all of them. */
async function measureSubscriptions({ database, gateway }: Setup): Promise<Table> {
  const before = await residentMemory(gateway.pid);
  const listeners: Listener[] = [];
  for (let user = 1; user <= subscriptions; user++) {
    // A few at a time, as clients come back after a restart.
    if (user % 50 === 0) await Promise.all(listeners.slice(-50).map(({ heard }) => heard(1)));
    listeners.push(await listen(gateway, tokenOf(user), 'subscription { activeDttTemplate { name } }'));
  }
  await Promise.all(listeners.map(({ heard }) => heard(1)));
  const after = await residentMemory(gateway.pid);
  const each = (((after ?? Number.NaN) - (before ?? Number.NaN)) * 1024) / subscriptions;

  const [toAll, toFirst, toOne]: [number[], number[], number[]] = [[], [], []];
  let events = 1;
  for (let round = 0; round < rounds; round++) {
    events++;
    await database.query(
      `UPDATE "DttTemplate" SET name = name || '.' WHERE id IN (SELECT "activeTemplateId" FROM "User")`,
    );
    const committed = performance.now();
    const times = await Promise.all(listeners.map(({ heard }) => heard(events)));
    toFirst.push(Math.min(...times) - committed);
    toAll.push(Math.max(...times) - committed);
  }
  const [first] = listeners;
  if (!first) throw new Error('there are no listeners');
  for (let round = 0; round < rounds * 5; round++) {
    events++;
    await database.query(
      `UPDATE "DttTemplate" SET name = name || '.' WHERE id = (SELECT "activeTemplateId" FROM "User" WHERE id = 1)`,
    );
    const committed = performance.now();
    toOne.push((await first.heard(events)) - committed);
  }
  for (const { socket } of listeners) socket.destroy();
  return {
    title: `${thousands(subscriptions)} open subscriptions, of as many users, on one process`,
    rows: [
      ['', ''],
      ['memory of a subscription, KiB', each.toFixed(1)],
      ['from a commit that changes what one has, to that one, ms', median(toOne).toFixed(1)],
      ['from a commit that changes what all have, to the first, ms', median(toFirst).toFixed(1)],
      ['… to the last, ms', median(toAll).toFixed(1)],
    ],
  };
}

/** A list with its links, to which one user subscribes on many screens. */
const sharedList = `subscription {
  viewer { dttSessions(first: 20) { totalCount nodes { id name passed createdAt segments { type points } } } }
}`;

/** Equal subscriptions of one user on one process: their memory, how long a change takes to reach all, and the load of the database. */
async function measureSharing({ database, gateway }: Setup): Promise<Table> {
  const before = await residentMemory(gateway.pid);
  const listeners: Listener[] = [];
  const began = performance.now();
  while (listeners.length < subscriptions) {
    const more = await Promise.all(Array.from({ length: 50 }, () => listen(gateway, tokenOf(1), sharedList)));
    await Promise.all(more.map(({ heard }) => heard(1)));
    listeners.push(...more);
  }
  const opened = performance.now() - began;
  const after = await residentMemory(gateway.pid);
  const each = (((after ?? Number.NaN) - (before ?? Number.NaN)) * 1024) / subscriptions;

  /** The number of statements that the database has executed so far, each in a transaction of its own. */
  async function statements(): Promise<number> {
    // An idle session reports its statistics with this delay.
    await sleep(12_000);
    const [row] = await database.query<{ n: string }>(
      'SELECT xact_commit AS n FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(row?.n);
  }

  const [toFirst, toLast]: [number[], number[]] = [[], []];
  let events = 1;
  async function change(): Promise<void> {
    events++;
    await database.query(
      `UPDATE "DttSession" SET name = coalesce(name, '') || '.' WHERE id = (
        SELECT id FROM "DttSession" WHERE "ownerId" = 1 ORDER BY "createdAt" DESC, id DESC LIMIT 1)`,
    );
    const committed = performance.now();
    const times = await Promise.all(listeners.map(({ heard }) => heard(events)));
    toFirst.push(Math.min(...times) - committed);
    toLast.push(Math.max(...times) - committed);
  }
  const start = await statements();
  const startedAt = performance.now();
  for (let round = 0; round < rounds; round++) await change();
  const end = await statements();
  const took = performance.now() - startedAt;
  // The statements in the same time without changes, such as the checks of the feed.
  await sleep(took - 12_000);
  const idle = (await statements()) - end;
  const used = await processorTime(gateway.pid);
  await change();
  const perChange = ((await processorTime(gateway.pid)) ?? Number.NaN) - (used ?? Number.NaN);
  for (const { socket } of listeners) socket.destroy();
  return {
    title: `${thousands(subscriptions)} equal subscriptions of one user, on one process`,
    rows: [
      ['', ''],
      ['until all had their first result, 50 at a time, ms', opened.toFixed(0)],
      ['memory of a subscription, KiB', each.toFixed(1)],
      ['statements for a change', ((end - start - idle) / rounds - 1).toFixed(1)],
      ['processor time of the gateway for a change, ms', (perChange / 1_000).toFixed(0)],
      ['from the commit of a change to the first, ms', median(toFirst).toFixed(1)],
      ['… to the last, ms', median(toLast).toFixed(1)],
    ],
  };
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}

const measures = {
  responses: measureResponses,
  sizes: ({ gateway }: Setup) => measureSizes(gateway),
  compressed: ({ generator, gateway }: Setup) =>
    measureRates({ gateway, rounds, run: (request) => measure(generator, gateway, request, 200) }),
  load: measureLoad,
  subscriptions: measureSubscriptions,
  sharing: measureSharing,
};

async function main(): Promise<void> {
  const database = await startDatabase();
  const generator = startLoadGenerator();
  try {
    const start = () =>
      startServer({
        ...dovetail({ cachesResponses: true }),
        env: { DATABASE_URL: database.url, LOG_LEVEL: 'error', MAX_SUBSCRIPTIONS: String(subscriptions) },
      });
    // Dovetail migrates the database when it starts.
    await (await start()).stop();
    await database.load('data.sql');
    for (const name of options.only.split(',')) {
      const measure = Object.entries(measures).find(([other]) => other === name)?.[1];
      if (!measure) throw new Error(`There is no ${name}: take ${Object.keys(measures)}.`);
      const gateway = await start();
      try {
        process.stdout.write(`${printRows(await measure({ database, generator, gateway }))}\n`);
      } finally {
        await gateway.stop();
      }
    }
    process.stdout.write(
      `Medians of ${rounds} rounds, ${options.connections} connections, Node ${process.version}.\n`,
    );
  } finally {
    await generator.stop();
    await database.close();
  }
}

for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => {
    killAll();
    process.exit(1);
  });
}
try {
  await main();
} catch (error) {
  killAll();
  process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
  process.exitCode = 1;
}
