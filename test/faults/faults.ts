/**
 * `npm run faults`: what clients see while things go wrong, how soon the gateway is well again by itself, and whether
 * any activation that it acknowledged was lost. A steady load goes on all the while. Fails if one was, if an answer
 * took longer than is promised or was not the documented one, or if the gateway does not recover.
 */

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { addAccounts, type LoadAccount } from './accounts.ts';
import { failoverHead, measureFailover } from './failover.ts';
import { type FaultyLine, openLine } from './line.ts';
import { type LoadReport, startLoad } from './load.ts';
import { measureOverload } from './overload.ts';
import { createServer, query } from './server.ts';
import { markdown, seconds } from './table.ts';
import { until, type WatchedGateway, watchGateway } from './watched.ts';

/** In seconds; shorter than usual, so that the faults need not last long. */
const statementTimeout = 2;

/** What the README promises for this, in milliseconds, and what a busy machine may be late. */
const longestResponse = (statementTimeout + 5) * 1_000;
const lateness = 1_000;

/** The most that the gateway may take to be well again, in milliseconds. */
const longestRecovery = 30_000;

interface Fault {
  readonly name: string;
  /** Makes it happen. What it gives back undoes it, for the gateway to recover. */
  begin(): Promise<() => Promise<void> | void>;
  /** How long it lasts, in milliseconds. */
  readonly lasts: number;
  /** Whether the gateway's process ends, so that its connections are cut. */
  readonly ends?: boolean;
}

const rows: string[][] = [
  ['fault', 'what clients saw', 'longest answer', 'well again after', 'acknowledged', 'lost'],
];
const complaints: string[] = [];

async function show(gateway: WatchedGateway, accounts: readonly LoadAccount[], fault: Fault): Promise<void> {
  process.stderr.write(`${fault.name} …\n`);
  const load = startLoad(gateway.url, accounts);
  await until('all is well before', () => load.isWellSince(0));
  await sleep(500);
  const before = gateway.exits.length;
  const end = await fault.begin();
  await sleep(fault.lasts);
  await end();
  const ended = performance.now();
  const recovered = await until('it recovers', () => load.isWellSince(ended), longestRecovery).then(
    () => true,
    () => false,
  );
  await sleep(1_000);
  const report = await load.stop();
  if (!recovered) complaints.push(`${fault.name}: it did not recover within ${longestRecovery} ms`);
  judge(fault, report, ended, gateway.exits.slice(before));
}

function judge(fault: Fault, report: LoadReport, ended: number, exits: WatchedGateway['exits']): void {
  const { replies, faults, acknowledged, lost } = report;
  const counts = new Map<string, number>();
  for (const { outcome } of replies) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const longest = Math.max(...replies.map(({ took }) => took));
  const failures = replies.filter(({ outcome, began, took }) => outcome !== '200' && began + took > ended);
  const wellAgain = Math.max(0, ...failures.map(({ began, took }) => began + took - ended));
  rows.push([
    fault.name,
    [...counts]
      .sort()
      .map(([outcome, count]) => `${count} × ${outcome}`)
      .join(', '),
    seconds(longest),
    seconds(wellAgain),
    String(acknowledged),
    String(lost),
  ]);
  const complain = (text: string) => complaints.push(`${fault.name}: ${text}`);
  if (lost > 0) complain(`${lost} acknowledged activations are lost`);
  if (longest > longestResponse + lateness) complain(`an answer took ${seconds(longest)}`);
  for (const text of faults) complain(`an answer that is not documented: ${text}`);
  if (!fault.ends && (counts.has('cut off') || counts.has('refused'))) complain('connections were cut');
  for (const { code, lastLine } of exits) {
    if (code !== 1 || lastLine === '') complain(`it ended with ${code}: ${lastLine}`);
    else if (!fault.ends) complain(`it ended: ${lastLine}`);
  }
}

/** A file system of its own in memory, which can be filled; undefined where this may not be mounted. */
async function mountMemory(folder: string, megabytes: number): Promise<string | undefined> {
  await mkdir(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' });
    mounted.push(folder);
    return folder;
  } catch {
    return undefined;
  }
}
const mounted: string[] = [];

/** Takes all room but so many bytes, until the answer is called. */
async function fill(folder: string, left: number): Promise<() => Promise<void>> {
  const file = join(folder, 'filler');
  const { bavail, bsize } = await statfs(folder);
  // Somebody else may have taken the last of it.
  await writeFile(file, Buffer.alloc(Math.max(bavail * bsize - left, 0))).catch(() => {});
  return () => rm(file);
}

/** Writes until there is no room for more of the write-ahead log. */
async function writeUntilFull(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  try {
    for (;;) {
      await client.query(
        `INSERT INTO junk SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 3000)`,
      );
      await client.query('TRUNCATE junk');
    }
  } catch {
    // That is the end of the room.
  } finally {
    client.end().catch(() => {});
  }
}

const junk = 'CREATE TABLE junk (text text)';

/** Kills the gateway several times, each while activations are under way. */
const killed = (gateway: WatchedGateway): Fault => ({
  name: 'gateway killed three times (SIGKILL)',
  lasts: 0,
  ends: true,
  async begin() {
    for (let time = 0; time < 3; time++) {
      await until('it serves', gateway.isReady);
      await sleep(400 + 100 * time);
      gateway.kill();
    }
    return () => {};
  },
});

async function showServer(folder: string): Promise<void> {
  const room = await mountMemory(join(folder, 'server'), 400);
  if (!room)
    process.stdout.write('No file system may be mounted here: there is no server with a full disk.\n');
  const primary = await createServer(join(room ?? folder, 'primary'), [
    'max_connections = 30',
    'max_wal_size = 64MB',
  ]);
  let line: FaultyLine | undefined;
  let gateway: WatchedGateway | undefined;
  try {
    line = await openLine(primary.port);
    const server = line;
    gateway = await watchGateway({
      DATABASE_URL: `postgresql://postgres@127.0.0.1:${server.port}/postgres`,
      STATEMENT_TIMEOUT: String(statementTimeout),
    });
    const ready = gateway;
    await until('it serves', ready.isReady);
    const accounts = await addAccounts(primary.admin, 3);
    await query(primary.admin, junk);
    const stopped = (name: string, signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL', lasts: number): Fault => ({
      name,
      lasts,
      async begin() {
        await primary.stop(signal);
        return primary.start;
      },
    });

    await show(ready, accounts, {
      name: 'database gone at start',
      lasts: 2_000,
      ends: true,
      async begin() {
        await primary.stop('SIGINT');
        ready.kill();
        return primary.start;
      },
    });
    await show(ready, accounts, stopped('database stopped for 3 s (fast)', 'SIGINT', 3_000));
    await show(ready, accounts, stopped('database stopped for 3 s (immediate)', 'SIGQUIT', 3_000));
    await show(ready, accounts, stopped('database restarted', 'SIGINT', 0));
    await show(ready, accounts, stopped('database killed (SIGKILL) and started', 'SIGKILL', 0));
    await show(ready, accounts, {
      name: 'database out of connections for 3 s',
      lasts: 3_000,
      begin: async () => takeConnections(primary.admin),
    });
    await show(ready, accounts, {
      name: 'database slow for 4 s (400 ms each way)',
      lasts: 4_000,
      async begin() {
        server.delay(400);
        return server.mend;
      },
    });
    await show(ready, accounts, {
      name: 'network silent for 6 s (black hole)',
      lasts: 6_000,
      async begin() {
        server.silence();
        return server.mend;
      },
    });
    await show(ready, accounts, {
      name: 'rows locked by somebody else for 4 s (statement timeout)',
      lasts: 4_000,
      async begin() {
        const client = new pg.Client(primary.admin);
        await client.connect();
        await client.query('BEGIN; SELECT FROM "User" FOR UPDATE');
        return () => client.end();
      },
    });
    if (room) {
      await show(ready, accounts, {
        name: 'disk of the database full for 3 s',
        lasts: 3_000,
        async begin() {
          const empty = await fill(room, 4_000_000);
          await writeUntilFull(primary.admin);
          return async () => {
            await empty();
            // A server that cannot even write that it stops ends; whoever watches over it starts it again.
            await primary.start();
          };
        },
      });
    }
    await show(ready, accounts, killed(ready));
  } finally {
    await gateway?.stop();
    line?.close();
    await primary.stop('SIGQUIT');
  }
}

/** Ends everybody else's connections, and takes all there are; what it gives back gives them up. */
async function takeConnections(admin: pg.ClientConfig): Promise<() => Promise<void>> {
  const taken: pg.Client[] = [];
  const take = async () => {
    const client = new pg.Client(admin);
    client.on('error', () => {});
    await client.connect();
    taken.push(client);
  };
  await take();
  const [first] = taken;
  for (let full = false; !full; ) {
    await first?.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND query NOT LIKE '%mine%' AND pid <> pg_backend_pid()`,
    );
    full = await Promise.all(
      Array.from({ length: 30 }, () => take().then(() => taken.at(-1)?.query('SELECT 1 AS mine'))),
    )
      .then(() => false)
      .catch(() => true);
  }
  return async () => {
    await Promise.all(taken.map((client) => client.end()));
  };
}

async function showEmbedded(folder: string): Promise<void> {
  const room = await mountMemory(join(folder, 'embedded'), 130);
  if (!room)
    process.stdout.write(
      'No file system may be mounted here: there is no embedded engine with a full disk.\n',
    );
  const dataDir = join(room ?? folder, 'data');
  const gateway = await watchGateway({ DATA_DIR: dataDir, STATEMENT_TIMEOUT: String(statementTimeout) });
  try {
    await until('it serves', gateway.isReady);
    const engine = { host: dataDir, user: 'postgres', database: 'postgres' };
    const accounts = await addAccounts(engine, 3);
    await query(engine, junk);
    const embedded = (fault: Fault): Fault => ({ ...fault, name: `embedded: ${fault.name}` });
    await show(gateway, accounts, embedded(killed(gateway)));
    if (!room) return;
    await show(gateway, accounts, {
      name: 'embedded: disk full for 3 s',
      lasts: 3_000,
      ends: true,
      begin: () => fill(room, 0),
    });
    await show(gateway, accounts, {
      name: 'embedded: no room for the write-ahead log for 3 s (the engine panics)',
      lasts: 3_000,
      ends: true,
      async begin() {
        const empty = await fill(room, 4_000_000);
        await writeUntilFull(engine);
        return empty;
      },
    });
  } finally {
    await gateway.stop();
  }
}

async function showFailover(): Promise<void> {
  const failovers = await measureFailover({ STATEMENT_TIMEOUT: String(statementTimeout) });
  process.stdout.write(`\n${markdown([failoverHead, ...failovers.map(({ cells }) => cells)])}\n`);
  complaints.push(...failovers.flatMap((row) => row.complaints));
}

const folder = await mkdtemp(join(tmpdir(), 'dovetail-faults-'));
await chmod(folder, 0o755);
const only = process.argv[2];
try {
  if (!only || only === 'server') await showServer(folder);
  if (!only || only === 'embedded') await showEmbedded(folder);
  if (!only || only === 'failover') await showFailover();
  if (!only || only === 'overload') complaints.push(...(await measureOverload(folder)));
} finally {
  for (const each of mounted) execFileSync('umount', ['--lazy', each]);
  await rm(folder, { recursive: true, force: true });
}
if (rows.length > 1) {
  process.stdout.write(
    `\nSTATEMENT_TIMEOUT=${statementTimeout}, so that an answer takes ${seconds(longestResponse)} at most.\n\n${markdown(rows)}\n`,
  );
}
if (complaints.length > 0) {
  process.stdout.write(`\n${complaints.join('\n')}\n`);
  process.exitCode = 1;
} else
  process.stdout.write(
    '\nNothing was lost that had to be there, and every answer was in time and as documented.\n',
  );
