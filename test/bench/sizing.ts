/** `--sizing`: measures the resources of a user, a session, a write and a request, and calculates those of many users. */

import { setTimeout as sleep } from 'node:timers/promises';
import { dovetail } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import { switchTo } from './feeds.ts';
import { type Listener, listen } from './listeners.ts';
import type { LoadGenerator } from './load.ts';
import { processorTime, residentMemory, rest, type ServerProcess, startServer } from './processes.ts';
import { serverProcesses, usedBy } from './serverTime.ts';
import { sizeOf } from './sizingModel.ts';
import { printMeasured, printSizes, roundAll } from './sizingTables.ts';
import type { Table } from './table.ts';
import { requestOf, tokenOf, workloads } from './workloads.ts';

interface Options {
  database: BenchDatabase;
  generator: LoadGenerator;
  node: string;
  env: Readonly<Record<string, string>>;
  quick: boolean;
  progress(text: string): void;
}

export async function measureSizing(given: Options): Promise<Table[]> {
  const options = { ...given, env: { ...given.env, CHANGE_FEED: 'logical' } };
  const { database, progress } = options;
  await switchTo(database, 'logical');
  // Waiting for the disk takes time but no processor time, so it is switched off for the session that writes.
  await database.query('SET synchronous_commit = off');
  const storage = await measureStorage(database);
  progress('measured: rows');
  const log = await measureWrites(options);
  progress('measured: writes');
  const requests = await measureRequests(options);
  progress('measured: requests');
  const memory = await measureMemory(options);
  const measured = roundAll({ ...storage, ...log, ...requests, ...memory });
  return [printMeasured(measured), printSizes([1e4, 1e6, 1e8].map((users) => sizeOf(users, measured)))];
}

/** Bytes on disk of the benchmark's data. */
async function measureStorage({ query }: BenchDatabase) {
  const tables = await query<{ name: string; bytes: string; rows: string }>(
    `SELECT relname AS name, pg_total_relation_size(oid) AS bytes, reltuples AS rows
     FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname !~ '^_'`,
  );
  const find = (name: string) => tables.find((table) => table.name === name) ?? { bytes: '0', rows: '1' };
  const each = (name: string) => Number(find(name).bytes) / Number(find(name).rows);
  const others = tables.filter(({ name }) => name !== 'DttSession' && name !== 'TrainerSegment');
  return {
    sessionBytes: each('DttSession'),
    segmentBytes: each('TrainerSegment'),
    userBytes: others.reduce((sum, { bytes }) => sum + Number(bytes), 0) / Number(find('User').rows),
  };
}

/** A training session of a random user, in one transaction, as a device would upload it. */
const writeSession = `DO $$ DECLARE owner integer := 1 + floor(random() * 1000); session integer; BEGIN
  INSERT INTO "DttSession" ("bubbleId", "ownerId", name, passed, "trainerId", "templateId")
  VALUES ('sizing-' || gen_random_uuid(), owner, 'Session', true, owner, owner + 2000) RETURNING id INTO session;
  INSERT INTO "TrainerSegment" ("sessionId", type, passed, "percentGrade", points, "durationMeasured", "durationTarget",
    "repsMeasured", "repsTarget", "speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat",
    "strokeLength", "distanceTravelled", "order")
  SELECT session, 'repetition', true, 93.5, 40, 60, 60, 30, 30, 1.5, 1.5, 120.5, 7.5, 900, 80.25, 12.5, n FROM generate_series(1, 5) n;
END $$`;

async function measureWrites({ database, quick }: Options) {
  const writes = quick ? 1_000 : 5_000;
  const measure = async () => {
    const { all } = await serverProcesses(database);
    const [own] = await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const pids = [...all, own?.pid ?? 0];
    const [before, began] = [await usedBy(pids), await position(database)];
    for (let made = 0; made < writes; made++) await database.query(writeSession);
    const [after, ended] = [await usedBy(pids), await position(database)];
    return { wal: (ended - began) / writes, server: (after - before) / writes };
  };
  await switchTo(database, 'notify');
  const notified = await measure();
  await switchTo(database, 'logical');
  const { wal, server } = await measure();
  // NOTIFY writes nothing to the write-ahead log, so the difference is the size of the two announcements.
  return { sessionWal: wal, sessionServer: server, messageWal: (wal - notified.wal) / 2 };
}

/** The position of the write-ahead log, in bytes. */
async function position({ query }: BenchDatabase): Promise<number> {
  const [row] = await query<{ bytes: string }>(
    `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bytes`,
  );
  return Number(row?.bytes);
}

async function measureRequests(options: Options) {
  const { database, node, env, quick, generator } = options;
  const seconds = quick ? 1 : 4;
  const start = (cachesResponses: boolean) => {
    const command = dovetail({ node, cachesResponses });
    // Rate limits are off, since counting them writes to the database as well.
    return startServer({
      ...command,
      env: { ...env, ...command.env, RATE_LIMIT: '0', RATE_LIMIT_ANONYMOUS: '0' },
    });
  };
  /** Of one request: microseconds of the gateway and of the database server, and bytes of the write-ahead log. */
  const measure = async (gateway: ServerProcess, name: string, requests: number) => {
    const job = { url: gateway.url, workload: name, endpoint: 'rest', connections: 16, requests } as const;
    await generator.run({ ...job, seconds: 1 });
    const { all } = await serverProcesses(database);
    const state = async () => Promise.all([processorTime(gateway.pid), usedBy(all), position(database)]);
    const before = await state();
    const made = await generator.run({ ...job, seconds });
    const after = await state();
    const [own = 0, server = 0, wal = 0] = after.map(
      (value, at) => ((value ?? 0) - (before[at] ?? 0)) / made.requests,
    );
    return { own, server, wal };
  };
  const plain = await start(false);
  try {
    const session = await measure(plain, 'session', 4_800);
    const sessions = await measure(plain, 'sessions', 4_800);
    const activation = await measure(plain, 'activation', 4_800);
    const caching = await start(true);
    try {
      const cached = await measure(caching, 'session', 480);
      return {
        // Half of the requests are for lists.
        readServer: (session.server + sessions.server) / 2,
        computedGateway: (session.own + sessions.own) / 2,
        activationWal: activation.wal,
        activationServer: activation.server,
        activationGateway: activation.own,
        cachedGateway: cached.own,
        messageGateway: await measureHearing(options, caching),
      };
    } finally {
      await caching.stop();
    }
  } finally {
    await plain.stop();
  }
}

/** Microseconds of a gateway for an announcement about a user without requests to it. */
async function measureHearing({ database, quick }: Options, gateway: ServerProcess): Promise<number> {
  const messages = quick ? 20_000 : 100_000;
  const before = await processorTime(gateway.pid);
  const began = performance.now();
  // Each in a transaction of its own, as in practice.
  await database.query(`DO $$ BEGIN FOR n IN 1..${messages} LOOP
    PERFORM announce(1 + n % 1000 || ' DttDevice'); COMMIT; END LOOP; END $$`);
  // The heartbeat follows them, so they have been received when it has.
  await sleep(5_000);
  const after = await processorTime(gateway.pid);
  const took = performance.now() - began;
  await sleep(took);
  const rest = await processorTime(gateway.pid);
  return (2 * (after ?? 0) - (before ?? 0) - (rest ?? 0)) / messages;
}

const mebibyte = 2 ** 20;
const users = 1_000;

async function measureMemory({ node, env, quick }: Options) {
  const command = dovetail({ node, cachesResponses: true });
  const gateway = await startServer({
    ...command,
    env: { ...env, ...command.env, RATE_LIMIT: '0', RESPONSE_CACHE_MB: '2048' },
  });
  const memory = async () => {
    await sleep(quick ? 5_000 : rest);
    return ((await residentMemory(gateway.pid)) ?? Number.NaN) * mebibyte;
  };
  const listeners: Listener[] = [];
  try {
    // The memory of a process that has served requests, but not of most users.
    for (let user = 1; user <= 20; user++) await visit(gateway, user);
    const processMemory = await memory();
    let responses = 0;
    for (let user = 21; user <= users; user++) responses += await visit(gateway, user);
    const withResponses = await memory();
    for (let user = 1; user <= users; user++) {
      listeners.push(await listen(gateway, tokenOf(user), 'subscription { activeDttTemplate { name } }'));
      // A few at a time, since requests beyond the limit of waiting ones are rejected.
      if (user % 50 === 0) await Promise.all(listeners.slice(-50).map(({ heard }) => heard(1)));
    }
    return {
      processMemory,
      responseMemory: (withResponses - processMemory) / responses,
      subscriptionMemory: ((await memory()) - withResponses) / users,
    };
  } finally {
    for (const { socket } of listeners) socket.destroy();
    await gateway.stop();
  }
}

/** Requests what the screens of a user show, so that the responses are cached. @returns their number. */
async function visit(gateway: ServerProcess, user: number): Promise<number> {
  const subject = { user, session: user, template: user };
  const screens = [
    ...workloads.filter(({ name }) => ['devices', 'active', 'sessions', 'session'].includes(name)),
  ].map((workload) => requestOf(workload, 'rest', subject));
  const another = workloads.filter(({ name }) => name === 'session');
  screens.push(
    ...another.map((workload) => requestOf(workload, 'rest', { ...subject, session: user + users })),
  );
  for (const { path, ...init } of screens) {
    const response = await fetch(gateway.url + path, init);
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  }
  return screens.length;
}
