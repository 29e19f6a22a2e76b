/**
 * Looks for what keeps a gateway from running well, and says what to do about it. Changes no data. Each check is a function in
 * a list, in the order in which one thing needs the other; leaving one out hurts no other.
 */

import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Config, readConfig } from '../../config/config.ts';
import { serverOf } from '../../database/connection/client.ts';
import { findEmbedded, findProblem } from '../../database/embedded/embedded.ts';
import { engineFolder } from '../../database/embedded/owner.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { lookAtPort } from '../../http/port.ts';
import { createUpstream, Unauthorized } from '../../upstream/upstream.ts';
import {
  type Check,
  type Finding,
  type Found,
  findingsOf,
  messageOf,
  runChecks,
  timeout,
} from './finding.ts';
import { askDatabase } from './server.ts';

const beforeDatabase: readonly Check<Config>[] = [
  { name: 'node', find: () => `Node ${process.versions.node}` },
  { name: 'settings', find: checkPersisted },
];

const afterDatabase: readonly Check<Config>[] = [
  { name: 'standby', find: checkStandbys },
  { name: 'disk', find: checkDisk },
  { name: 'port', find: ({ HOST, PORT }) => checkPort(HOST, 'PORT', PORT) },
  { name: 'metrics port', find: ({ HOST, METRICS_PORT }) => checkPort(HOST, 'METRICS_PORT', METRICS_PORT) },
  { name: 'upstream', find: checkUpstream },
];

/** All findings. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  let config: Config;
  try {
    config = readConfig(env);
  } catch (error) {
    const advice = 'Correct the variable, or unset it for the default.';
    const lines = messageOf(error).split('\n');
    return findingsOf(
      'settings',
      lines.map((says) => ({ says, advice })),
    );
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
  const { loadOptionalFeatures } = await import('../../server/optionalFeatures.ts');
  try {
    const { schema } = await loadOptionalFeatures(config);
    loadPersistedOperations(config, createDocuments(config, schema));
    return 'all of them can be used';
  } catch (error) {
    const advice = 'Correct PERSISTED_OPERATIONS and PERSISTED_OPERATIONS_FILE, or unset them.';
    return { says: messageOf(error), advice };
  }
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR } = config;
  if (url === undefined) return checkEmbedded(DATA_DIR);
  return askDatabase(serverOf(url), withoutPassword(url), { url, directUrl });
}

async function checkEmbedded(dataDir: string): Promise<Finding[]> {
  const folder = resolve(dataDir);
  const unwritable = await access(await nearestExisting(folder), constants.W_OK | constants.X_OK).then(
    () => undefined,
    errorText,
  );
  if (unwritable !== undefined) {
    const advice = 'Make it a folder of the user who runs Dovetail, or set DATA_DIR to another.';
    return findingsOf('database', { says: `DATA_DIR ${folder}: ${unwritable}`, advice });
  }
  const privacy = findingsOf('database access', await checkAccess(folder));
  const running = await findEmbedded(dataDir);
  if (!running) return [...findingsOf('database', await checkFolder(dataDir)), ...privacy];
  const name = `embedded, in ${folder}, open in a running gateway`;
  return [...(await askDatabase(running, name, undefined)), ...privacy];
}

/** A folder that no gateway has open. */
async function checkFolder(dataDir: string): Promise<Found> {
  const folder = resolve(dataDir);
  const exists = await stat(join(folder, engineFolder)).catch(() => undefined);
  if (!exists) return `embedded, none yet: it will be in ${folder}`;
  return (await findProblem(dataDir)) ?? `embedded, in ${folder}, and no gateway has it open`;
}

/** Whether only the folder's owner can read or replace the database. */
async function checkAccess(folder: string): Promise<Found> {
  const opens = [
    { path: folder, bits: 0o022, may: 'put other files in the place of those in' },
    { path: join(folder, engineFolder), bits: 0o077, may: 'read or write' },
  ];
  for (const { path, bits, may } of opens) {
    const { mode } = (await stat(path).catch(() => undefined)) ?? { mode: 0 };
    if (mode & bits) return { says: `other users may ${may} ${path}`, advice: `Run: chmod 700 ${path}` };
  }
  return 'only its owner can read it';
}

/** Loaded only where the settings name some. */
async function checkStandbys({ DATABASE_URL, DATABASE_REPLICA_URLS: urls }: Config): Promise<Found[]> {
  if (DATABASE_URL === undefined || urls === undefined) return [];
  const standbys = await import('./standbys.ts');
  return standbys.checkStandbys(DATABASE_URL, urls);
}

/** Free space, in bytes, below which a database is about to stop. */
const leastSpace = 200 * 1024 * 1024;

async function checkDisk({ DATABASE_URL, DATA_DIR }: Config): Promise<Found> {
  if (DATABASE_URL !== undefined) return undefined;
  const { bavail, bsize } = await statfs(await nearestExisting(resolve(DATA_DIR)));
  const free = bavail * bsize;
  const says = `${(free / 1024 ** 3).toFixed(1)} GiB are free for DATA_DIR`;
  return free >= leastSpace ? says : { says, advice: 'Make room, or set DATA_DIR to another disk.' };
}

/** The path itself, or the nearest folder above it that exists. */
async function nearestExisting(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** @param setting the name of the one that chooses the port. */
async function checkPort(host: string, setting: string, port: number | undefined): Promise<Found> {
  if (port === undefined) return undefined;
  if (port === 0) return 'any that is free';
  const state = await lookAtPort(host, port);
  if (state.is === 'free') return `${port} is free`;
  if (state.is === 'gateway') return `a running gateway has ${port}`;
  return state.is === 'unusable'
    ? { says: `${host} ${port}: ${state.reason}`, advice: `Choose another ${setting}, or another HOST.` }
    : {
        says: `${port} is taken by another program`,
        advice: `Stop it, or set ${setting} to another port; 0 picks a free one.`,
      };
}

async function checkUpstream({ UPSTREAM_URL: base, UPSTREAM_TOKEN: token }: Config): Promise<Found> {
  if (base === undefined) return undefined;
  // Without UPSTREAM_TOKEN, each client sends the token of its own account. That the upstream rejects another one shows as well that it responds.
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
