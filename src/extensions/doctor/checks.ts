/**
 * Finds what keeps a gateway from running well, and says what to do about it. Changes no data. The checks are functions in a
 * list: what a check needs is checked before it. A check may be left out without harm to the others.
 */

import { styleText } from 'node:util';
import { printJson } from '../../cli/output.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { findEmbedded, hasDatabase, openEmbedded } from '../../database/embedded/embedded.ts';
import { folderOf } from '../../database/embedded/folder.ts';
import { errorText, SetupError } from '../../errors.ts';
import type { Extension, Found } from '../../extensionPoints.ts';
import { folderAdvice } from './advice.ts';
import { type Finding, runChecks } from './finding.ts';
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
    if (!(error instanceof SetupError)) throw error;
    return error.message.split('\n').map((says) => ({ check: 'settings', state: 'problem', says, advice }));
  }
  const { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR } = config;
  return [
    ...(await runChecks([
      ['node', () => `Node ${process.versions.node}`],
      ['settings', () => 'all of them can be used'],
    ])),
    ...(await (url === undefined
      ? runChecks([['database', () => checkFolder(DATA_DIR)]])
      : examineServer({ url, directUrl }))),
    ...(await runChecks(extensions.flatMap(({ checks }) => checks?.(config) ?? []))),
  ];
}

async function checkFolder(dataDir: string): Promise<Found> {
  try {
    const folder = folderOf(dataDir);
    if (await findEmbedded(folder)) return `embedded, in ${folder}, open in a running gateway`;
    if (!(await hasDatabase(folder))) return `embedded, none yet: it will be in ${folder}`;
    await (await openEmbedded(folder)).close();
    return `embedded, in ${folder}, and no gateway has it open`;
  } catch (error) {
    return { says: errorText(error), advice: folderAdvice(error) };
  }
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
