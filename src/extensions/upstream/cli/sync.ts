/** `dovetail sync`: pulls an account from a service that speaks the REST interface, also while a gateway runs. */

import { Command } from 'commander';
import { createMigrationReporter } from '../../../cli/database.ts';
import { printJson, printTable, say } from '../../../cli/output.ts';
import { readConfig } from '../../../config/config.ts';
import { joinDatabase } from '../../../database/database.ts';
import { SetupError } from '../../../errors.ts';
import { extensions } from '../../extensions.ts';
import { createUpstream } from '../client/upstream.ts';
import { countChanges, nextStep, type OnProgress, reportColumns, reportRows } from '../mirror/report.ts';
import { sync } from '../mirror/sync.ts';

/** How often, in milliseconds, the progress of a long run is reported. */
const reportInterval = 5_000;

export const syncCommand = new Command('sync')
  .description('mirror the account of the token in UPSTREAM_TOKEN; run again to bring the mirror up to date')
  .option(
    '--from <base_url>',
    'where the account is, such as https://example.com/api/v1 (default: UPSTREAM_URL)',
  )
  .option('--full', 'read every record again, and remove sessions that are gone')
  .option('--json', 'what was done, as JSON')
  .action(runSync);

async function runSync({ from, full = false, json }: { from?: string; full?: boolean; json?: true }) {
  const config = readConfig(
    { ...process.env, ...(from !== undefined && { UPSTREAM_URL: from }) },
    extensions,
  );
  const { UPSTREAM_URL: base, UPSTREAM_TOKEN: token } = config;
  if (base === undefined) throw new SetupError('Say where the account is, with --from or UPSTREAM_URL.');
  if (token === undefined)
    throw new SetupError(`UPSTREAM_TOKEN is not set: it takes the API token for ${base}.`);
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const upstream = createUpstream({
    base,
    token,
    onRetry: (reason, attempt, attempts) => say(`${reason}; trying again (${attempt} of ${attempts})`),
  });
  let reportedAt = performance.now();
  const onProgress: OnProgress = (kind, fetched, expected) => {
    if (performance.now() - reportedAt < reportInterval) return;
    reportedAt = performance.now();
    say(`${kind}: ${fetched}${expected ? ` of about ${expected}` : ''} so far`);
  };
  const database = await joinDatabase(config, createMigrationReporter(config));
  try {
    const report = await sync({ pool: database.pool, upstream, full, signal: stop.signal, onProgress });
    if (!report) throw new SetupError('Another run is under way. Try again when it has ended.');
    const { account, countsByKind, requests, notes } = report;
    for (const note of notes) say(note);
    if (json)
      printJson({ username: account.username, requests, notes, records: Object.fromEntries(countsByKind) });
    else printTable(['', ...reportColumns], reportRows(report));
    const summary = countChanges(report) > 0 ? 'Done' : 'Nothing has changed';
    say(`${summary}, with ${requests} requests.`);
    say(`Next: ${nextStep(account, config)}`);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    say('Interrupted. What was read is stored, and the next run goes on.');
    process.exitCode = 130;
  } finally {
    await database.close();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
