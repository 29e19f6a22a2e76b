/** Time zones, by the names that JavaScript and PostgreSQL have for the same. */

import { argumentError } from '../../errors.ts';

/** In so many letters, these alone mean the same to everybody. */
const abbreviations = new Set(['UTC', 'GMT']);

/**
 * Checks the name of a time zone.
 *
 * Other names of three letters are known to both, and not as the same: `IST` is in India or in Israel, and `CET` has summer
 * time or has none. Offsets, which some versions of Node.js take, PostgreSQL reads with the opposite sign.
 * @throws a client error for a name that is none, or has several meanings.
 */
export function readTimeZone(name: string): string {
  const isAmbiguous = /^[a-z]{3}$/i.test(name) && !abbreviations.has(name.toUpperCase());
  if (isAmbiguous || !/^[a-z]/i.test(name) || !isKnown(name)) throw unknownTimeZone(name, 'and is not');
  return name;
}

/** What is said of a time zone that is not known here, or not to the database. */
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
