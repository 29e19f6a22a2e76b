/** The settings of the core together with those of all extensions. */

import { readConfig as readConfigOf, settingsOf } from '../../src/config/config.ts';
import { extensions } from '../../src/extensions/extensions.ts';

export const settings = settingsOf(extensions);

export const readConfig = (env: Readonly<Record<string, string | undefined>>) =>
  readConfigOf(env, extensions);
