/** Variables of the environment that are nearly a setting: they have no effect, and whoever set one meant something. */

import { renamed, settings } from '../config.ts';

/** The setting that is taken for each variable of the environment that is nearly one, in a line each. */
export function findSimilarSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.keys(settings);
  return Object.keys(env).flatMap((given) => {
    if (!env[given] || known.includes(given) || Object.hasOwn(renamed, given)) return [];
    const meant = known.find((name) => !env[name] && isNearly(given, name));
    return meant === undefined ? [] : [`${given} is no setting, and has no effect: is ${meant} meant?`];
  });
}

/** Whether the one may be a slip for the other: short names have to be closer, since many are alike by chance. */
function isNearly(given: string, name: string): boolean {
  const plain = (text: string) => text.toUpperCase().replaceAll(/[_-]/g, '');
  const [one, other] = [plain(given), plain(name)];
  // HOST, PORT and their like would have neighbours such as POST.
  if (other.length < 7) return one === other;
  const most = other.length < 10 ? 1 : 2;
  // Which most are by their lengths alone: every start compares all variables with all settings.
  return Math.abs(one.length - other.length) <= most && distance(one, other) <= most;
}

/** How many characters have to be put in, left out or replaced to make the one of the other (Levenshtein). */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, character] of [...one].entries()) {
    const above = row;
    row = [index + 1];
    for (const [column, opposite] of [...other].entries())
      row.push(
        Math.min(
          (above[column] ?? 0) + (character === opposite ? 0 : 1),
          (above[column + 1] ?? 0) + 1,
          (row[column] ?? 0) + 1,
        ),
      );
  }
  return row[other.length] ?? 0;
}
