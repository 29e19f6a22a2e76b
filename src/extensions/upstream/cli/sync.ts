/** `dovetail sync`: pulls an account from a service that speaks the REST interface, also while a gateway runs. */

import type pg from 'pg';
import { withDatabase } from '../../../cli/database.ts';
import { printJson, printTable, say } from '../../../cli/output.ts';
import { commandLine, shellWord } from '../../../config/config.ts';
import { override } from '../../../config/environment.ts';
import { SetupError } from '../../../errors.ts';
import { createUpstream, UpstreamError } from '../client/upstream.ts';
import { createRunReport } from '../mirror/run.ts';
import { countChanges, sync } from '../mirror/sync.ts';
import { readUpstreamConfig } from '../settings.ts';

/** How often, in milliseconds, the progress of a long run is reported. */
const reportInterval = 5_000;

const columns = ['fetched', 'written', 'gone', 'skipped'] as const;

export interface SyncFlags {
  readonly from?: string;
  readonly full?: boolean;
  readonly json?: true;
}

export async function runSync({ from, full = false, json }: SyncFlags): Promise<void> {
  const config = readUpstreamConfig(override(process.env, from === undefined ? {} : { UPSTREAM_URL: from }));
  const { UPSTREAM_URL: base, UPSTREAM_TOKEN: token } = config;
  if (base === undefined) throw new SetupError('Say where the account is, with --from or UPSTREAM_URL.');
  if (token === undefined)
    throw new SetupError(`UPSTREAM_TOKEN is not set: it takes the API token for ${base}.`);
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const upstream = createUpstream({ base, token, isConfigured: true });
  const report = createRunReport();
  const progress = setInterval(() => say(`${report.fetched()} records so far`), reportInterval);
  const run = async (pool: pg.Pool) => {
    const done = await sync({ pool, upstream, full, signal: stop.signal, report });
    if (!done) throw new SetupError('Another run is under way. Try again when it has ended.');
    const { account, countsByKind, requests, notes } = done;
    for (const note of notes) say(note);
    if (json)
      printJson({ username: account.username, requests, notes, records: Object.fromEntries(countsByKind) });
    else {
      const rows = [...countsByKind].map(([name, counts]) => [
        name,
        ...columns.map((each) => String(counts[each])),
      ]);
      printTable(['', ...columns], rows);
    }
    const summary = countChanges(done) > 0 ? 'Done' : 'Nothing has changed';
    say(`${summary}, with ${requests} requests.`);
    say(`Next: ${commandLine(config, `token create --user ${shellWord(account.username)} --name mirror`)}`);
  };
  try {
    await withDatabase(config, ({ pool }) => run(pool), { mayCreate: true });
  } catch (error) {
    if (!stop.signal.aborted)
      throw error instanceof UpstreamError ? new SetupError(error.message, { cause: error }) : error;
    say('Interrupted. What was read is stored, and the next run goes on.');
    process.exitCode = 130;
  } finally {
    clearInterval(progress);
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
