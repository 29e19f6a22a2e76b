/** Validates instants as text from clients or an upstream (RFC 3339). */

import { z } from 'zod';

/** An instant has an offset from UTC, and `T` and `Z` in either case. It may omit the seconds, as Java does if they are zero. */
export const isoInstant = z.preprocess(
  (value) =>
    typeof value === 'string' ? value.toUpperCase().replace(/(T\d\d:\d\d)(?=Z|[+-])/, '$1:00') : value,
  z.iso.datetime({ offset: true }),
);
