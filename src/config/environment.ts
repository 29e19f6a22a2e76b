/** Reads the values of settings from the environment, or from the files that it names, and finds what a shell or a file left in them. */

import { readFileSync } from 'node:fs';
import { errorText, SetupError, withoutPassword } from '../errors.ts';
import type { Setting, Settings } from './setting.ts';
import { isSimilar } from './similarNames.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variable that names a file with the value of a setting, such as a secret of Docker or Kubernetes. */
const fileVariable = (name: string) => `${name}_FILE`;

/** Whether the environment has a value for the setting. */
export const isGiven = (env: Environment, name: string): boolean =>
  Boolean(env[name] || env[fileVariable(name)]);

/** The environment with these values in place of its own, and of those in files. */
export function override(env: Environment, values: Environment): Environment {
  const files = Object.keys(values).map((name) => [fileVariable(name), undefined] as const);
  return { ...env, ...Object.fromEntries(files), ...values };
}

/** The values for settings, and a line for each that cannot be read or has something stray. An empty variable counts as unset. */
export function readValues(env: Environment, settings: Settings) {
  const values: Record<string, string> = {};
  const complaints: string[] = [];
  for (const [name, setting] of Object.entries(settings)) {
    // Not PERSISTED_OPERATIONS_FILE, which is a setting of its own.
    const file = fileVariable(name) in settings ? undefined : env[fileVariable(name)];
    try {
      const value = file ? readFromFile(env, name, file) : env[name];
      if (!value) continue;
      throwIfStray(name, value, setting);
      values[name] = value;
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      complaints.push(error.message);
    }
  }
  return { values, complaints };
}

function readFromFile(env: Environment, name: string, file: string): string {
  const variable = fileVariable(name);
  if (env[name]) throw new SetupError(`${name} and ${variable} are both set: unset one of them.`);
  throwIfStray(variable, file);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    // The rest of the message repeats the value, which may be a URL with a password by mistake.
    const [reason = ''] = errorText(error).split(',', 1);
    throw new SetupError(`${variable} is ${shown(file)}, but takes a file to read: ${reason}.`);
  }
  // An editor ends the last line, and so does `echo`.
  const value = text.replace(/[\r\n]+$/, '');
  if (value === '') throw new SetupError(`${variable} is ${shown(file)}, but that file is empty.`);
  return value;
}

/** A value in a message: in quotes, with special characters escaped, and without the passwords that it may have. */
export function shown(value: string): string {
  const safe = /[@=?]/.test(value) ? withoutPassword(value) : value;
  return JSON.stringify(safe).replace(
    invisible,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Characters that no setting takes, and that nobody sees. */
const invisible = /[\p{Cc}\p{Zl}\p{Zp}\u200B\uFEFF]/gu;

/**
 * Rejects what a shell would have removed, but an image, a file of variables or a manifest does not. Taken as it is, it would be a
 * part of a path, and the gateway would begin with an empty database beside the one that is meant.
 * @throws with a line that shows it.
 */
function throwIfStray(name: string, value: string, { secret, isList }: Partial<Setting<unknown>> = {}): void {
  // The items of a list may stand on lines of their own.
  const text = isList ? value.replace(/\s+/g, ' ').trim() : value;
  if (text.search(invisible) === -1 && !/^[\s"'`“‘]|[\s"'`”’]$/.test(text)) return;
  throw new SetupError(
    `${name} is ${secret ? 'set' : shown(value)}, with a space or a quotation mark at its start or end, or an invisible character: remove that.`,
  );
}

/** Variables by which other programs are told where a database is. */
const databaseName =
  /^PG(HOST|HOSTADDR|SERVICE|DATABASE)$|(^|_)(DB|DATABASE|PG|POSTGRES(QL)?)_?(\w+_)?(UR[LI]|DSN|HOST|CONNECTION_STRING)(_FILE)?$/i;
const databaseValue = /^(jdbc:)?postgres(ql)?:/i;

/** Lines about variables that have no effect, though they look as if they were meant for Dovetail. */
export function findIgnored(env: Environment, names: readonly string[]): string[] {
  const known = [...names, ...names.map(fileVariable)];
  const isEmbedded = !isGiven(env, 'DATABASE_URL');
  return Object.entries(env).flatMap(([given, value]) => {
    if (!value || known.includes(given)) return [];
    const meant = known.find((name) => !env[name] && isSimilar(given, name));
    if (meant !== undefined) return `Unknown setting ${given} (ignored). Did you mean ${meant}?`;
    return isEmbedded && (databaseName.test(given) || databaseValue.test(value))
      ? `${given} looks like a database, and has no effect: without DATABASE_URL, Dovetail uses its embedded one.`
      : [];
  });
}
