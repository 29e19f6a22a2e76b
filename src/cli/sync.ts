/** `dovetail sync`: pulls an account from a service that speaks the REST interface, also while a gateway runs. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError, Option } from 'commander';
import ora from 'ora';
import { type Config, readConfig } from '../config/config.ts';
import { joinDatabase } from '../database/database.ts';
import { readId } from '../database/ids.ts';
import { SetupError } from '../errors.ts';
import { describeChanges, nextStep, reportTable, type SyncListener } from '../mirror/report.ts';
import { type SyncOptions, type SyncReport, sync } from '../mirror/sync.ts';
import { createUpstream } from '../upstream/upstream.ts';
import { createMigrationReporter } from './database.ts';

interface Flags {
  from?: string;
  full?: boolean;
  json?: boolean;
  lkbx: number[];
  lockTemplate: number[];
  lockSession: number[];
}

export const syncCommand = new Command('sync')
  .description('mirror the account of the token in UPSTREAM_TOKEN; run again to bring the mirror up to date')
  .option(
    '--from <base_url>',
    'where the account is, such as https://example.com/api/v1 (default: UPSTREAM_URL)',
  )
  .option('--full', 'read every record again, and remove sessions that are gone')
  .addOption(idsOption('--lkbx', 'LKBX devices to read if the service does not list them, such as 1,2'))
  .addOption(idsOption('--lock-template', 'lock templates, likewise'))
  .addOption(idsOption('--lock-session', 'lock sessions, likewise'))
  .option('--json', 'what was done, as JSON')
  .action(runSync);

async function runSync({ from, full = false, json = false, ...ids }: Flags): Promise<void> {
  const config = readConfig({ ...process.env, ...(from !== undefined && { UPSTREAM_URL: from }) });
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const progress = showProgress();
  /** Why the latest request had to be repeated, until one succeeds. */
  let lastError: string | undefined;
  const upstream = createUpstream({
    ...accountOf(config),
    onRetry({ reason, attempt, attempts }) {
      lastError = reason;
      say(`${reason}; trying again (${attempt} of ${attempts})`);
    },
  });
  const listener: SyncListener = {
    ...progress,
    advanced(...args) {
      lastError = undefined;
      progress.advanced?.(...args);
    },
  };
  const database = await joinDatabase(config, createMigrationReporter(config));
  try {
    const report = await syncWhenFree({
      pool: database.pool,
      upstream,
      full,
      named: {
        lkbxDevices: ids.lkbx,
        lockTemplates: ids.lockTemplate,
        lockSessions: ids.lockSession,
      },
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
    progress.close();
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

interface Progress extends SyncListener {
  close(): void;
}

/** A line for each kind of records that has been read. A terminal is shown as well how far the present one is. */
function showProgress(): Progress {
  const { isTTY, columns } = process.stderr;
  // ora does not regard NO_COLOR, which is set if it is not empty (no-color.org).
  const color = process.env.NO_COLOR ? false : 'cyan';
  // A terminal that does not report its width has 0 columns, for which ora would clear lines without end.
  const spinner =
    isTTY && columns > 0 ? ora({ stream: process.stderr, discardStdin: false, color }) : undefined;
  return {
    advanced(kind, fetched, expected = 0) {
      spinner?.start(`${kind} ${fetched}${expected > 0 ? ` of about ${expected}` : ''}`);
    },
    finished(kind, { fetched, created, updated }) {
      spinner?.stop();
      say(`${kind}: ${fetched} fetched, ${created} created, ${updated} updated`);
    },
    close: () => spinner?.stop(),
  };
}

/** An option that takes ids, and may be given several times. */
function idsOption(flag: string, description: string): Option {
  return new Option(`${flag} <ids>`, description).argParser(parseIds).default([], 'none');
}

/** Parses the ids of an option, and adds them to those of the same option further left. */
function parseIds(text: string, previous: readonly number[]): number[] {
  const ids = text.split(',').map((part) => {
    const id = readId(part);
    if (id === undefined) throw new InvalidArgumentError('It takes ids such as 1,2.');
    return id;
  });
  return [...previous, ...ids];
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
