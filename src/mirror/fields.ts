/** The fields that records consist of, as an upstream may give them and PostgreSQL can store them. */

import { z } from 'zod';

export const int = z.int32();

/** Ids of the REST interface start at 1. */
export const recordId = int.min(1);

/** Text that PostgreSQL can store: without NUL, and without halves of surrogate pairs. */
export const text = z
  .string()
  .max(10_000)
  .regex(/^[^\0\p{Surrogate}]*$/u, 'has characters that cannot be stored');

/** Text that is indexed, or as good as a name. */
export const name = text.max(255);

/** An instant whose year has four digits in UTC too, which an offset can change. */
export const instant = z.iso
  .datetime({ offset: true })
  .refine((value) => {
    const year = new Date(value).getUTCFullYear();
    return year >= 1000 && year <= 9999;
  }, 'is not between the years 1000 and 9999')
  .transform((value) => new Date(value).toISOString());

/** The segments of a template or session. */
export const segments = <S extends z.ZodType>(segment: S) => z.array(segment).max(1000);

/** A value that is never null in the mirror, so that null counts as left out. */
export const known = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);
