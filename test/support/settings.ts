/** The settings of the core together with those of all extensions. */

import { existsSync } from 'node:fs';
import { readConfig as readConfigOf, settingsOf } from '../../src/config/config.ts';
import { SetupError } from '../../src/errors.ts';
import { extensions } from '../../src/extensions/extensions.ts';

export const settings = settingsOf(extensions);

/** The variables that settings are read from. */
export const variables = Object.keys(settings).flatMap((name) => [name, `${name}_FILE`]);

/** Whether there are tools for language models, one of the ways to run an operation. */
export const hasTools = 'MCP' in settings;

/** Whether there are WebSockets, another one. */
export const hasWebSockets = existsSync('src/extensions/webSockets');

/** Whether requests may name the operations of a file. */
export const hasPersistedFile = existsSync('src/extensions/persistedOperations');

/** Whether there is the demo account. */
export const hasDemo = 'DEMO_ACCOUNT' in settings;

/** Why settings are rejected. */
export function complaintAbout(env: Readonly<Record<string, string>>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof SetupError) return error.message;
    throw error;
  }
  throw new Error('nothing was wrong');
}

export const readConfig = (env: Readonly<Record<string, string | undefined>>) =>
  readConfigOf(env, extensions);
