/** Looks for what keeps a gateway from running well, and says what to do about it. Changes nothing. */

import { type Config, readConfig } from '../../config/config.ts';
import { errorText, SetupError } from '../../errors.ts';
import { createUpstream, Unauthorized } from '../../upstream/upstream.ts';
import { checkDatabase } from './database.ts';
import { type CheckResult, type Finding, hint, ok, problem, skipped, timeout } from './finding.ts';
import { checkDisk, checkPort } from './machine.ts';

/** All findings, in the order in which one thing needs the other. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  const findings: Finding[] = [];
  const note = (check: string, verdict: CheckResult) => findings.push({ check, ...verdict });

  note('node', ok(`Node ${process.versions.node}`));
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    for (const line of error.message.split('\n'))
      note('settings', problem(line, 'Correct the variable, or unset it for the default.'));
    return findings;
  }
  note('settings', await checkPersisted(config));
  if (config.WORKERS !== 1 && config.DATABASE_URL === undefined)
    note(
      'workers',
      hint(
        `1, though WORKERS is ${config.WORKERS}: the embedded database belongs to one process`,
        'Set DATABASE_URL for more.',
      ),
    );

  findings.push(...(await checkDatabase(config)), ...(await standbysOf(config)));
  note('disk', await checkDisk(config));
  note('port', await checkPort(config, 'PORT', config.PORT));
  if (config.METRICS_PORT !== undefined)
    note('metrics port', await checkPort(config, 'METRICS_PORT', config.METRICS_PORT));
  note('upstream', await checkUpstream(config));
  return findings;
}

/** Loaded only where the settings name some. */
async function standbysOf(config: Config): Promise<Finding[]> {
  if (config.DATABASE_REPLICA_URLS === undefined) return [];
  const { checkStandbys } = await import('./standbys.ts');
  return checkStandbys(config);
}

/** Whether the persisted operations that the settings name can be used. */
async function checkPersisted(config: Config): Promise<CheckResult> {
  const { createDocuments } = await import('../../graphql/documents.ts');
  const { loadPersistedOperations } = await import('../../graphql/persistedFile.ts');
  const { loadOptionalFeatures } = await import('../../server/optionalFeatures.ts');
  try {
    const { schema } = await loadOptionalFeatures(config);
    loadPersistedOperations(config, createDocuments(config, schema));
    return ok('all of them can be used');
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return problem(
      error.message,
      'Correct PERSISTED_OPERATIONS and PERSISTED_OPERATIONS_FILE, or unset them.',
    );
  }
}

async function checkUpstream({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }: Config): Promise<CheckResult> {
  if (base === undefined) return skipped('there is none');
  // Without UPSTREAM_TOKEN, each client sends the token of its own account. That the upstream rejects another one shows as well that it responds.
  const upstream = createUpstream({ base, token: token ?? 'doctor', timing: { timeout, retries: 0 } });
  try {
    await upstream.get('/users/me');
    return ok(`${upstream.base} responds, and accepts the token`);
  } catch (error) {
    if (token === undefined && error instanceof Unauthorized)
      return ok(`${upstream.base} responds; clients bring tokens of it`);
    return problem(errorText(error), 'Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later.');
  }
}
