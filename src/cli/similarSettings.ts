/** Environment variables with almost the name of a setting. They have no effect, so they are probably misspelt. */

import { renamed, settings } from '../config/config.ts';
import { isSimilar } from '../config/similarNames.ts';

/** A line for each environment variable with almost the name of a setting, which names that setting. */
export function findSimilarSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.keys(settings);
  return Object.keys(env).flatMap((given) => {
    if (!env[given] || known.includes(given) || Object.hasOwn(renamed, given)) return [];
    const meant = known.find((name) => !env[name] && isSimilar(given, name));
    return meant === undefined ? [] : [`${given} is no setting, and has no effect: is ${meant} meant?`];
  });
}
