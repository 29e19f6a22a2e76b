/**
 * Finds what keeps a gateway from running well, and says what to do about it. Changes no data. The checks are functions in a
 * list: what a check needs is checked before it. A check may be left out without harm to the others.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { Command } from 'commander';
import { type Config, readConfig } from '../../config/config.ts';
import { findEmbedded, tryToOpen } from '../../database/embedded/embedded.ts';
import { engineFolder, folderOf, tryFolder } from '../../database/embedded/folder.ts';
import { errorText } from '../../errors.ts';
import type { Check, Found } from '../../extensionPoints.ts';
import { extensions } from '../../extensions/extensions.ts';
import { printJson } from '../output.ts';
import { type Finding, problemOf, runChecks } from './finding.ts';
import { findPort } from './port.ts';
import { examineServer } from './server.ts';

const beforeDatabase: readonly Check<Config>[] = [
  ['node', () => `Node ${process.versions.node}`],
  ['settings', checkPersisted],
];

const afterDatabase: readonly Check<Config>[] = [['port', ({ HOST, PORT }) => findPort(HOST, 'PORT', PORT)]];

/** All findings. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  let config: Config;
  try {
    config = readConfig(env, extensions);
  } catch (error) {
    const advice = 'Correct the variable, or unset it for the default.';
    const lines = problemOf(error).says.split('\n');
    return lines.map((says) => ({ check: 'settings', state: 'problem', says, advice }));
  }
  return [
    ...(await runChecks(beforeDatabase, config)),
    ...(await checkDatabase(config)),
    ...(await runChecks(afterDatabase, config)),
    ...(await runChecks(
      extensions.flatMap(({ checks }) => checks?.(config) ?? []),
      undefined,
    )),
  ];
}

/** Whether the persisted operations that the settings name can be used. */
async function checkPersisted(config: Config): Promise<Found> {
  const { createDocuments } = await import('../../graphql/documents.ts');
  const { loadPlugins } = await import('../../server/yogaPlugins.ts');
  const { loadPersistedOperations } = await import('../../graphql/persistedFile.ts');
  const { loadSchema } = await import('../../server/hooks.ts');
  await loadPlugins(config.YOGA_PLUGINS);
  const schema = await loadSchema(config);
  loadPersistedOperations(config, createDocuments(config, schema));
  return 'all of them can be used';
}

const checkDatabase = ({ DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATA_DIR }: Config) =>
  url === undefined ? runChecks([['database', checkFolder]], DATA_DIR) : examineServer({ url, directUrl });

async function checkFolder(dataDir: string): Promise<Found> {
  const folder = folderOf(dataDir);
  const error = await tryFolder(folder).then(() => undefined, errorText);
  const advice = 'Make it a folder of the user who runs Dovetail, or set DATA_DIR to another.';
  if (error !== undefined) return { says: `DATA_DIR ${folder}: ${error}`, advice };
  if (await findEmbedded(folder)) return `embedded, in ${folder}, open in a running gateway`;
  if (!existsSync(join(folder, engineFolder))) return `embedded, none yet: it will be in ${folder}`;
  return (await tryToOpen(folder)) ?? `embedded, in ${folder}, and no gateway has it open`;
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
