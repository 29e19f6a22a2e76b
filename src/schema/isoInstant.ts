/** An instant as text, from a client or an upstream (RFC 3339). */

import { z } from 'zod';

/** With an offset from UTC, `T` and `Z` in either case. It may leave out the seconds, as Java does where they are zero. */
export const isoInstant = z.preprocess(
  (value) =>
    typeof value === 'string' ? value.toUpperCase().replace(/(T\d\d:\d\d)(?=Z|[+-])/, '$1:00') : value,
  z.iso.datetime({ offset: true }),
);
