/**
 * Finds what keeps a gateway from running well, and says what to do about it. Changes no data. The checks are functions in a
 * list: what a check needs is checked before it. A check may be left out without harm to the others.
 */

import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { styleText } from 'node:util';
import { Command } from 'commander';
import { type Config, readConfig } from '../../config/config.ts';
import { findEmbedded, tryToOpen } from '../../database/embedded/embedded.ts';
import { engineFolder } from '../../database/embedded/folder.ts';
import { errorText } from '../../errors.ts';
import { checkPort, lookAtPort } from '../../http/port.ts';
import { createUpstream, Unauthorized } from '../../upstream/upstream.ts';
import { printJson } from '../output.ts';
import { type Check, type Finding, type Found, problemOf, runChecks, timeout } from './finding.ts';
import { examineServer } from './server.ts';

const beforeDatabase: readonly Check<Config>[] = [
  ['node', () => `Node ${process.versions.node}`],
  ['settings', checkPersisted],
];

const afterDatabase: readonly Check<Config>[] = [
  ['port', (config) => findPort(config, 'PORT')],
  ['metrics port', (config) => findPort(config, 'METRICS_PORT')],
  ['upstream', checkUpstream],
];

/** All findings. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    const advice = 'Correct the variable, or unset it for the default.';
    const lines = problemOf(error).says.split('\n');
    return lines.map((says) => ({ check: 'settings', state: 'problem', says, advice }));
  }
  return [
    ...(await runChecks(beforeDatabase, config)),
    ...(await checkDatabase(config)),
    ...(await runChecks(afterDatabase, config)),
  ];
}

/** Whether the persisted operations that the settings name can be used. */
async function checkPersisted(config: Config): Promise<Found> {
  const { createDocuments } = await import('../../graphql/documents.ts');
  const { loadPersistedOperations } = await import('../../graphql/persistedFile.ts');
  const { loadOptionalFeatures } = await import('../../server/options.ts');
  const { schema } = await loadOptionalFeatures(config);
  loadPersistedOperations(config, createDocuments(config, schema));
  return 'all of them can be used';
}

const checkDatabase = ({ DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR }: Config) =>
  url === undefined
    ? runChecks([['database', checkFolder]], resolve(DATA_DIR))
    : examineServer({ url, directUrl });

async function checkFolder(folder: string): Promise<Found> {
  const needed = constants.W_OK | constants.X_OK;
  const error = await access(nearestExisting(folder), needed).then(() => undefined, errorText);
  const advice = 'Make it a folder of the user who runs Dovetail, or set DATA_DIR to another.';
  if (error !== undefined) return { says: `DATA_DIR ${folder}: ${error}`, advice };
  if (await findEmbedded(folder)) return `embedded, in ${folder}, open in a running gateway`;
  if (!existsSync(join(folder, engineFolder))) return `embedded, none yet: it will be in ${folder}`;
  return (await tryToOpen(folder)) ?? `embedded, in ${folder}, and no gateway has it open`;
}

/** The path itself, or the nearest folder above it that exists. */
function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** Whether a gateway can listen on the port of a setting, or already does. */
async function findPort({ HOST, ...ports }: Config, setting: 'PORT' | 'METRICS_PORT'): Promise<Found> {
  const port = ports[setting];
  if (port === undefined) return undefined;
  if (port === 0) return 'any that is free';
  if ((await lookAtPort(HOST, port)).is === 'gateway') return `a running gateway has ${port}`;
  await checkPort(HOST, setting, port);
  return `${port} is free`;
}

async function checkUpstream({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }: Config): Promise<Found> {
  if (base === undefined) return undefined;
  // Without UPSTREAM_TOKEN, each client sends the token of its own account. A rejected token shows as well that the upstream responds.
  const upstream = createUpstream({ base, token: token ?? 'doctor', timing: { timeout, retries: 0 } });
  try {
    await upstream.get('/users/me');
    return `${upstream.base} responds, and accepts the token`;
  } catch (error) {
    if (token === undefined && error instanceof Unauthorized)
      return `${upstream.base} responds; clients bring tokens of it`;
    const advice = 'Correct UPSTREAM_URL and UPSTREAM_TOKEN, or try again later.';
    return { says: errorText(error), advice };
  }
}

export const doctorCommand = new Command('doctor')
  .description('check settings, database, port and the rest, and say what to do; changes nothing')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const findings = await examine(process.env);
    const isWell = findings.every(({ state }) => state !== 'problem');
    if (json) printJson({ ok: isWell, findings });
    else process.stdout.write(findings.map(line).join(''));
    if (!isWell) process.exitCode = 1;
  });

const marks = { ok: ['green', '✔'], problem: ['red', '✖'] } as const;

function line({ check, state, says, advice }: Finding): string {
  const [colour, mark] = marks[state];
  const text = `${styleText(colour, mark)} ${check.padEnd(16)} ${says}\n`;
  return advice === undefined ? text : `${text}  ${' '.repeat(16)} → ${advice}\n`;
}
