/** Instants as text (RFC 3339): those of clients or other services are validated, and those of responses are written. */

import { z } from 'zod';

/** An instant has an offset from UTC, and `T` and `Z` in either case. It may omit the seconds, as Java does if they are zero. */
export const isoInstant = z.preprocess(
  (value) =>
    typeof value === 'string' ? value.toUpperCase().replace(/(T\d\d:\d\d)(?=Z|[+-])/, '$1:00') : value,
  z.iso.datetime({ offset: true }),
);

/** The years of the format, without the year 0, which the calendars of many clients do not have. */
const [earliest, latest] = [Date.parse('0001-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/**
 * Writes a time. A time outside of the years of the format becomes the nearest one within, so that the record can be shown.
 * A time that a `Date` cannot represent is a number, such as an infinite one.
 * @throws {RangeError} for an invalid date.
 */
export const isoTime = (date: Date | number): string =>
  new Date(Math.min(Math.max(date.valueOf(), earliest), latest)).toISOString();
