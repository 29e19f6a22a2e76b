/** The settings of the core together with those of all extensions. */

import { readConfig as readConfigOf, settingsOf } from '../../src/config/config.ts';
import { extensions } from '../../src/extensions/extensions.ts';

export const settings = settingsOf(extensions);

/** Whether there are tools for language models, one of the ways to run an operation. */
export const hasTools = 'MCP' in settings;

export const readConfig = (env: Readonly<Record<string, string | undefined>>) =>
  readConfigOf(env, extensions);
