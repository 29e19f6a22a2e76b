/**
 * `npm run faults`: what clients see during faults, how soon the gateway recovers by itself, and whether any activation that it
 * acknowledged was lost, all under a steady load. Fails if an activation was lost, if a response took longer than documented
 * or was not the documented one, or if the gateway does not recover.
 */

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { commandName, connectionTo } from '../../src/database/embedded/server.ts';
import type { StopMode } from '../support/postgres.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { until } from '../support/until.ts';
import { addAccounts, type LoadAccount, type LoadReport, startLoad } from './load.ts';
import { createServer } from './server.ts';
import { type SupervisedGateway, superviseGateway } from './supervised.ts';

const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`;

/** In seconds: shorter than the default, so that short faults suffice. */
const statementTimeout = 2;

/** In milliseconds: the longest response that the documentation promises for this timeout, and a tolerance for a busy machine. */
const longestResponse = (statementTimeout + 5) * 1_000;
const tolerance = 1_000;

/** In milliseconds: the longest time that the gateway may take to recover. */
const longestRecovery = 30_000;

interface Fault {
  readonly name: string;
  /** Causes the fault. @returns a function that ends it, so that the gateway can recover. */
  begin(): Promise<() => Promise<void> | void>;
  /** In milliseconds: how long the fault lasts. */
  readonly lasts: number;
  /** Whether the process of the gateway ends, so that its connections are closed. */
  readonly ends?: boolean;
}

/** A table, as the documentation shows it. */
const rows: string[][] = [
  ['fault', 'what clients saw', 'longest response', 'well again after', 'acknowledged', 'lost'],
  Array(6).fill('---'),
];
const complaints: string[] = [];

async function cause(
  gateway: SupervisedGateway,
  accounts: readonly LoadAccount[],
  fault: Fault,
): Promise<void> {
  process.stderr.write(`${fault.name} …\n`);
  const load = startLoad(gateway.url, accounts);
  await until('all requests succeed before the fault', () => load.succeedsSince(0));
  await sleep(500);
  const before = gateway.exits.length;
  const end = await fault.begin();
  await sleep(fault.lasts);
  await end();
  const ended = performance.now();
  await until('all requests succeed again', () => load.succeedsSince(ended), longestRecovery).catch(
    ({ message }) => complaints.push(`${fault.name}: ${message}`),
  );
  await sleep(1_000);
  const report = await load.stop();
  addRow(fault, report, ended, gateway.exits.slice(before));
}

/** Adds the row of a fault to the table, and to the complaints what is wrong with it. */
function addRow(fault: Fault, report: LoadReport, ended: number, exits: SupervisedGateway['exits']): void {
  const { replies, undocumented, acknowledged, lost } = report;
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
  if (longest > longestResponse + tolerance) complain(`a response took ${seconds(longest)}`);
  for (const text of undocumented) complain(`a response that is not documented: ${text}`);
  if (!fault.ends && (counts.has('cut off') || counts.has('refused')))
    complain('connections were closed or refused');
  for (const { code, lastLine } of exits) {
    if (code !== 1 || lastLine === '') complain(`the gateway exited with ${code}: ${lastLine}`);
    else if (!fault.ends) complain(`the gateway exited: ${lastLine}`);
  }
}

/** Mounts a file system in memory, which can be filled up. @returns undefined if mounting is not permitted, which it prints. */
async function mountMemory(folder: string, megabytes: number): Promise<string | undefined> {
  await mkdir(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' });
    mounted.push(folder);
    return folder;
  } catch {
    process.stdout.write(`${folder} cannot be mounted: the faults of a full disk are left out.\n`);
    return undefined;
  }
}
const mounted: string[] = [];

/** Fills the file system except for so many bytes. @returns a function that frees the space. */
async function fill(folder: string, left: number): Promise<() => Promise<void>> {
  const file = join(folder, 'filler');
  const { bavail, bsize } = await statfs(folder);
  // Another process may have used up the space meanwhile.
  await writeFile(file, Buffer.alloc(Math.max(bavail * bsize - left, 0))).catch(() => {});
  return () => rm(file);
}

/** Writes until there is no space left for the write-ahead log. */
async function writeUntilFull(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query('CREATE TABLE IF NOT EXISTS junk (text text)');
    for (;;) {
      await client.query(
        `INSERT INTO junk SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 3000)`,
      );
      await client.query('TRUNCATE junk');
    }
  } catch {
    // The file system is full.
  } finally {
    client.end().catch(() => {});
  }
}

/** Kills the gateway three times while activations are in flight. */
const killed = (gateway: SupervisedGateway): Fault => ({
  name: 'gateway killed three times (SIGKILL)',
  lasts: 0,
  ends: true,
  async begin() {
    for (let time = 0; time < 3; time++) {
      await until('the gateway is ready', gateway.isReady);
      await sleep(400 + 100 * time);
      gateway.kill();
    }
    return () => {};
  },
});

async function runServerFaults(folder: string): Promise<void> {
  const smallDisk = await mountMemory(join(folder, 'server'), 400);
  const primary = await createServer(join(smallDisk ?? folder, 'primary'), {
    max_connections: '30',
    max_wal_size: '64MB',
  });
  const admin = { connectionString: primary.url };
  let proxy: TcpProxy | undefined;
  let gateway: SupervisedGateway | undefined;
  try {
    proxy = await openTcpProxy({ pool: new pg.Pool(admin) });
    const network = proxy;
    gateway = await superviseGateway({
      DATABASE_URL: network.url,
      STATEMENT_TIMEOUT: String(statementTimeout),
    });
    const ready = gateway;
    await until('the gateway is ready', ready.isReady);
    const accounts = await addAccounts(admin);
    const stopped = (name: string, mode: StopMode, lasts: number): Fault => ({
      name,
      lasts,
      async begin() {
        await primary.stop(mode);
        return primary.start;
      },
    });

    await cause(ready, accounts, {
      name: 'database gone at start',
      lasts: 2_000,
      ends: true,
      async begin() {
        await primary.stop('fast');
        ready.kill();
        return primary.start;
      },
    });
    await cause(ready, accounts, stopped('database stopped for 3 s (fast)', 'fast', 3_000));
    await cause(ready, accounts, stopped('database stopped for 3 s (immediate)', 'immediate', 3_000));
    await cause(ready, accounts, stopped('database restarted', 'fast', 0));
    await cause(ready, accounts, stopped('database killed (SIGKILL) and started', 'killed', 0));
    await cause(ready, accounts, {
      name: 'database out of connections for 3 s',
      lasts: 3_000,
      begin: async () => takeConnections(admin),
    });
    await cause(ready, accounts, {
      name: 'network silent for 6 s (black hole)',
      lasts: 6_000,
      async begin() {
        network.hold();
        return network.resume;
      },
    });
    await cause(ready, accounts, {
      name: 'rows locked by another session for 4 s (statement timeout)',
      lasts: 4_000,
      async begin() {
        const client = new pg.Client(admin);
        await client.connect();
        await client.query('BEGIN; SELECT FROM "User" FOR UPDATE');
        return () => client.end();
      },
    });
    if (smallDisk) {
      await cause(ready, accounts, {
        name: 'disk of the database full for 3 s',
        lasts: 3_000,
        async begin() {
          const empty = await fill(smallDisk, 4_000_000);
          await writeUntilFull(admin);
          return async () => {
            await empty();
            // A server that cannot even log its shutdown exits; a supervisor would start it again.
            await primary.start();
          };
        },
      });
    }
    await cause(ready, accounts, killed(ready));
  } finally {
    await gateway?.stop();
    await proxy?.close();
    await primary.stop('immediate');
  }
}

/** Terminates all other connections, and opens connections until no more are accepted. @returns a function that closes them. */
async function takeConnections(admin: pg.ClientConfig): Promise<() => Promise<void>> {
  const taken: pg.Client[] = [];
  const take = async () => {
    const client = new pg.Client({ ...admin, application_name: 'taken' });
    client.on('error', () => {});
    await client.connect();
    taken.push(client);
  };
  await take();
  const [first] = taken;
  for (let full = false; !full; ) {
    await first?.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND application_name <> 'taken'`,
    );
    const made = await Promise.allSettled(Array.from({ length: 30 }, take));
    full = made.some(({ status }) => status === 'rejected');
  }
  return async () => {
    await Promise.all(taken.map((client) => client.end()));
  };
}

async function runEmbeddedFaults(folder: string): Promise<void> {
  const smallDisk = await mountMemory(join(folder, 'embedded'), 130);
  const dataDir = join(smallDisk ?? folder, 'data');
  const gateway = await superviseGateway({ DATA_DIR: dataDir, STATEMENT_TIMEOUT: String(statementTimeout) });
  try {
    await until('the gateway is ready', gateway.isReady);
    const engine = connectionTo(dataDir, commandName);
    const accounts = await addAccounts(engine);
    const embedded = (fault: Fault): Fault => ({ ...fault, name: `embedded: ${fault.name}` });
    await cause(gateway, accounts, embedded(killed(gateway)));
    if (!smallDisk) return;
    await cause(gateway, accounts, {
      name: 'embedded: disk full for 3 s',
      lasts: 3_000,
      ends: true,
      begin: () => fill(smallDisk, 0),
    });
    await cause(gateway, accounts, {
      name: 'embedded: no room for the write-ahead log for 3 s (the engine panics)',
      lasts: 3_000,
      ends: true,
      async begin() {
        const empty = await fill(smallDisk, 4_000_000);
        await writeUntilFull(engine);
        return empty;
      },
    });
  } finally {
    await gateway.stop();
  }
}

const folder = await mkdtemp(join(tmpdir(), 'dovetail-faults-'));
await chmod(folder, 0o755);
const only = process.argv[2];
try {
  if (!only || only === 'server') await runServerFaults(folder);
  if (!only || only === 'embedded') await runEmbeddedFaults(folder);
} finally {
  for (const each of mounted) execFileSync('umount', ['--lazy', each]);
  await rm(folder, { recursive: true, force: true });
}
process.stdout.write(
  `\nSTATEMENT_TIMEOUT=${statementTimeout}, so that a response takes ${seconds(longestResponse)} at most.\n\n${rows.map((cells) => `| ${cells.join(' | ')} |\n`).join('')}`,
);
if (complaints.length > 0) {
  process.stdout.write(`\n${complaints.join('\n')}\n`);
  process.exitCode = 1;
} else
  process.stdout.write(
    '\nNo acknowledged activation was lost, and every response was in time and as documented.\n',
  );
