/** `dovetail sync`: pulls an account from a service that speaks the REST interface, also while a gateway runs. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import { joinDatabase } from '../database/database.ts';
import { SetupError } from '../errors.ts';
import { describeChanges, nextStep, reportTable, type SyncListener } from '../mirror/report.ts';
import { type SyncOptions, type SyncReport, sync } from '../mirror/sync.ts';
import { createUpstream } from '../upstream/upstream.ts';
import { createMigrationReporter } from './database.ts';

/** How often, in milliseconds, the progress of a long run is reported. */
const reportInterval = 5_000;

interface Flags {
  from?: string;
  full?: boolean;
  json?: boolean;
}

export const syncCommand = new Command('sync')
  .description('mirror the account of the token in UPSTREAM_TOKEN; run again to bring the mirror up to date')
  .option(
    '--from <base_url>',
    'where the account is, such as https://example.com/api/v1 (default: UPSTREAM_URL)',
  )
  .option('--full', 'read every record again, and remove sessions that are gone')
  .option('--json', 'what was done, as JSON')
  .action(runSync);

async function runSync({ from, full = false, json = false }: Flags): Promise<void> {
  const config = readConfig({ ...process.env, ...(from !== undefined && { UPSTREAM_URL: from }) });
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  /** Why the latest request had to be repeated, until one succeeds. */
  let lastError: string | undefined;
  const upstream = createUpstream({
    ...accountOf(config),
    onRetry({ reason, attempt, attempts }) {
      lastError = reason;
      say(`${reason}; trying again (${attempt} of ${attempts})`);
    },
  });
  let reportedAt = performance.now();
  const listener: SyncListener = {
    advanced(kind, fetched, expected) {
      lastError = undefined;
      if (performance.now() - reportedAt < reportInterval) return;
      reportedAt = performance.now();
      say(`${kind}: ${fetched}${expected ? ` of about ${expected}` : ''} so far`);
    },
    finished: (kind, { fetched, created, updated }) =>
      say(`${kind}: ${fetched} fetched, ${created} created, ${updated} updated`),
  };
  const database = await joinDatabase(config, createMigrationReporter(config));
  try {
    const report = await syncWhenFree({
      pool: database.pool,
      upstream,
      full,
      signal: stop.signal,
      listener,
    });
    for (const note of report.notes) say(note);
    process.stdout.write(json ? asJson(report) : `${reportTable(report)}\n`);
    const summary = describeChanges(report) === undefined ? 'Nothing has changed' : 'Done';
    say(`${summary}, with ${report.requests} requests.`);
    say(`Next: ${nextStep(report.account, config)}`);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    const last = lastError === undefined ? '' : ` The last error: ${lastError}.`;
    say(`Interrupted.${last} What was read is stored, and the next run goes on.`);
    process.exitCode = 130;
  } finally {
    await database.close();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

function asJson({ account, countsByKind, requests, notes }: SyncReport): string {
  const { username } = account;
  return `${JSON.stringify({ username, requests, notes, records: Object.fromEntries(countsByKind) }, null, 2)}\n`;
}

/** Syncs, after waiting for the end of a run in another process, such as a gateway. */
async function syncWhenFree(options: SyncOptions) {
  for (let hasWaited = false; ; hasWaited = true) {
    const report = await sync(options);
    if (report) return report;
    if (!hasWaited) say('Another run is under way. Waiting for it to end.');
    await sleep(1000, undefined, { ...(options.signal && { signal: options.signal }) });
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** @throws {SetupError} when the settings do not say where the account is, or lack its token. */
function accountOf({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }: Config): { base: string; token: string } {
  if (base === undefined) throw new SetupError('Say where the account is, with --from or UPSTREAM_URL.');
  if (token === undefined)
    throw new SetupError(`UPSTREAM_TOKEN is not set: it takes the API token for ${base}.`);
  return { base, token };
}
