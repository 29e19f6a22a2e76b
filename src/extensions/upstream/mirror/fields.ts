/**
 * Schemas of the fields of records: values that an upstream may send and PostgreSQL can store. A value that makes no sense, such as
 * a negative distance, becomes null.
 */

import { z } from 'zod';
import { isText } from '../../../database/reader/statement.ts';
import { isoInstant } from '../../../schema/isoInstant.ts';

/** Accepts a number that is written as text, such as "12". */
export const numeric = <S extends z.ZodType>(schema: S) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    schema,
  );

/** Accepts a number in place of text, unless it is so large that JSON may have lost digits. */
const textual = <S extends z.ZodType>(schema: S) =>
  z.preprocess(
    (value) =>
      typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : value,
    schema,
  );

export const int = numeric(z.int32());

/** Ids of the REST interface start at 1. */
export const recordId = numeric(z.int32().min(1));

export const number = numeric(z.number());

/** Text that PostgreSQL can store. */
const storable = z.string().max(10_000).refine(isText, 'has characters that cannot be stored');

export const text = textual(storable);

/** Text that is short enough for an index, such as an identifier. */
export const name = textual(storable.max(255));

export const username = textual(storable.max(255).regex(/\S/, 'is blank'));

/** An instant whose year has four digits in UTC. An offset may move it out of that range. */
export const instant = isoInstant
  .refine((value) => {
    const year = new Date(value).getUTCFullYear();
    return year >= 1000 && year <= 9999;
  }, 'is not between the years 1000 and 9999')
  .transform((value) => new Date(value).toISOString());

/** In seconds. */
export const duration = int.transform((value) => Math.max(value, 0));

/** Makes a title for a record whose title is blank. @param kind the name of its kind. */
export const withTitle = <Row extends { readonly id: number; readonly name: string }>(
  kind: string,
  row: Row,
) => (/\S/.test(row.name) ? row : { ...row, name: `${kind} ${row.id}` });

/** A measure. One that is out of its range, or no number, is null. */
const measure = (schema: z.ZodType<number>) => numeric(schema).nullish().catch(null);

/** A number of seconds, repetitions and the like. */
export const count = measure(z.int32().min(0));

/** A measure that is never below 0, such as a distance. */
export const amount = measure(z.number().min(0));

export const percent = measure(z.number().min(0).max(100));

/** A MAC address, normalised to upper case with colons. */
export const macAddress = name.nullish().transform((value) => {
  if (value == null) return value;
  const digits = value.replace(/[-:.\s]/g, '').toUpperCase();
  if (!/^[0-9A-F]{12}$/.test(digits)) return null;
  return digits.replace(/..(?!$)/g, '$&:');
});

export const segments = <S extends z.ZodType>(segment: S) => z.array(segment).max(1000);

/** The first issue, with the path of the field that it is about. */
export function firstIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  if (!issue) return 'is not valid';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}
