/** Checks the names of time zones, which must mean the same to JavaScript and to PostgreSQL. */

import { argumentError } from '../../errors.ts';

/** The only abbreviations of three letters that mean the same everywhere. */
const abbreviations = new Set(['UTC', 'GMT']);

/**
 * Checks the name of a time zone.
 *
 * JavaScript and PostgreSQL know other names of three letters, but with different meanings: `IST` is in India or in Israel, and
 * `CET` has summer time or has none. Some versions of Node.js accept offsets, which PostgreSQL reads with the opposite sign.
 * @throws a client error for an unknown or ambiguous name.
 */
export function readTimeZone(name: string): string {
  const isAmbiguous = /^[a-z]{3}$/i.test(name) && !abbreviations.has(name.toUpperCase());
  if (isAmbiguous || !/^[a-z]/i.test(name) || !isKnown(name)) throw unknownTimeZone(name, 'and is not');
  return name;
}

/** The client error for a time zone that JavaScript or the database does not know. */
export function unknownTimeZone(
  name: string,
  what = 'and the database of this gateway does not know',
): Error {
  const given = JSON.stringify(name.slice(0, 64));
  return argumentError(
    'timeZone',
    `timeZone must be the name of a time zone, such as "Europe/Berlin" or "UTC", ${what} ${given}`,
  );
}

function isKnown(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}
