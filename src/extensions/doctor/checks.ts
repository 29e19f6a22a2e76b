/**
 * Finds what keeps a gateway from running well, and says what to do about it. Changes no data. The checks are functions in a
 * list: what a check needs is checked before it. A check may be left out without harm to the others.
 */

import { existsSync, lstatSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { styleText } from 'node:util';
import { printJson } from '../../cli/output.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { findEmbedded, openEmbedded } from '../../database/embedded/embedded.ts';
import { engineFolder, folderOf } from '../../database/embedded/folder.ts';
import { errorText } from '../../errors.ts';
import {
  type Check,
  type ExaminedServer,
  type Extension,
  type Found,
  schemaOf,
} from '../../extensionPoints.ts';
import { describePort } from '../../http/port.ts';
import { folderAdvice } from './advice.ts';
import { type Finding, problemOf, runChecks } from './finding.ts';
import { examineServer } from './server.ts';

export async function examine(
  env: Readonly<Record<string, string | undefined>>,
  extensions: readonly Extension[],
): Promise<Finding[]> {
  let config: Config;
  try {
    config = readConfig(env, extensions);
  } catch (error) {
    const advice = 'Correct the variable, or unset it for the default.';
    const lines = problemOf(error).says.split('\n');
    return lines.map((says) => ({ check: 'settings', state: 'problem', says, advice }));
  }
  return [
    ...(await runChecks<void>(
      [
        ['node', () => `Node ${process.versions.node}`],
        ['settings', () => 'all of them can be used'],
      ],
      undefined,
    )),
    ...(await checkDatabase(
      config,
      extensions.flatMap(({ serverChecks = [] }) => serverChecks),
    )),
    ...(await runChecks<void>(
      [
        ['port', () => findPortProblem(config)],
        ...extensions.flatMap(({ checks }) => checks?.(config, () => schemaOf(extensions, config)) ?? []),
      ],
      undefined,
    )),
  ];
}

const checkDatabase = (
  { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR }: Config,
  serverChecks: readonly Check<ExaminedServer>[],
) =>
  url === undefined
    ? runChecks([['database', checkFolder]], DATA_DIR)
    : examineServer({ url, directUrl }, serverChecks);

async function checkFolder(dataDir: string): Promise<Found> {
  const folder = folderOf(dataDir);
  const error: unknown = await tryFolder(folder).catch((thrown) => thrown);
  if (error) return { says: `DATA_DIR ${folder}: ${errorText(error)}`, advice: folderAdvice(folder, error) };
  if (await findEmbedded(folder)) return `embedded, in ${folder}, open in a running gateway`;
  if (!existsSync(join(folder, engineFolder))) return `embedded, none yet: it will be in ${folder}`;
  try {
    await (await openEmbedded(folder)).close();
    return `embedded, in ${folder}, and no gateway has it open`;
  } catch (problem) {
    return { says: errorText(problem), advice: folderAdvice(folder, problem) };
  }
}

async function findPortProblem({ HOST, PORT }: Config): Promise<Found> {
  try {
    return await describePort(HOST, 'PORT', PORT);
  } catch (error) {
    const advice =
      'Only root may use ports below 1024: choose another, such as 4000, and put a proxy in front. HOST 127.0.0.1 is the machine itself, 0.0.0.0 all its addresses.';
    const isUnusable = errorText(error).includes('cannot be listened on');
    return { ...problemOf(error), ...(isUnusable && { advice }) };
  }
}

/** Tries whether the folder can be made and written to, and leaves nothing behind. */
async function tryFolder(folder: string): Promise<void> {
  let nearest = folder;
  // A link that leads nowhere exists.
  while (!lstatSync(nearest, { throwIfNoEntry: false }) && dirname(nearest) !== nearest)
    nearest = dirname(nearest);
  await rmdir(await mkdtemp(join(nearest, '.dovetail-')));
}

export async function runDoctor(extensions: readonly Extension[], json: boolean): Promise<void> {
  const findings = await examine(process.env, extensions);
  const isWell = findings.every(({ state }) => state !== 'problem');
  if (json) printJson({ ok: isWell, findings });
  else process.stdout.write(findings.map(line).join(''));
  if (!isWell) process.exitCode = 1;
}

const marks = { ok: ['green', '✔'], problem: ['red', '✖'] } as const;

function line({ check, state, says, advice }: Finding): string {
  const [colour, mark] = marks[state];
  const text = `${styleText(colour, mark)} ${check.padEnd(16)} ${says}\n`;
  return advice === undefined ? text : `${text}  ${' '.repeat(16)} → ${advice}\n`;
}
