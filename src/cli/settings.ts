/** The settings for commands on the database. */

import { type Config, readConfig } from '../config/config.ts';
import { type Environment, isGiven, override } from '../config/environment.ts';
import { extensions } from '../extensions/extensions.ts';

/** Leaves out settings of extensions that lack another one: a shell may have them for another command. */
export function readSettings(): Config {
  let env: Environment = process.env;
  for (const { requires = {} } of extensions)
    for (const [name, other] of Object.entries(requires))
      if (!isGiven(env, other)) env = override(env, { [name]: undefined });
  return readConfig(env, extensions);
}
