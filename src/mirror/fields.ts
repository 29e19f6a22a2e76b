/** The fields that records consist of, as an upstream may give them and PostgreSQL can store them. */

import { z } from 'zod';
import { isoInstant } from '../schema/isoInstant.ts';

/** Takes digits where a number is meant for the number that they say. */
export const numeric = <S extends z.ZodType>(schema: S) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    schema,
  );

/** Takes a number where text is meant for its digits, unless it is too large to have kept all of them. */
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

/** What PostgreSQL can store: no NUL, and no halves of surrogate pairs. */
const storable = z
  .string()
  .max(10_000)
  .regex(/^[^\0\p{Surrogate}]*$/u, 'has characters that cannot be stored');

export const text = textual(storable);

/** Text that is indexed, or as good as a name. */
export const name = textual(storable.max(255));

/** The same of a user. */
export const username = textual(storable.max(255).regex(/\S/, 'is blank'));

/** An instant whose year has four digits in UTC too, which an offset can change. */
export const instant = isoInstant
  .refine((value) => {
    const year = new Date(value).getUTCFullYear();
    return year >= 1000 && year <= 9999;
  }, 'is not between the years 1000 and 9999')
  .transform((value) => new Date(value).toISOString());

/** A value that makes no sense: `settle` puts another in its place, and says so. */
export class InvalidValue<Instead = string | number | null> {
  readonly why: string;
  /** What is put in its place: null, where there may be nothing. */
  readonly instead: (row: { readonly id?: unknown }) => Instead;

  constructor(why: string, instead: InvalidValue<Instead>['instead']) {
    this.why = why;
    this.instead = instead;
  }
}

const unless =
  <Value>(makesSense: (value: Value) => boolean, why: string) =>
  (value: Value | null | undefined) =>
    value == null || makesSense(value) ? value : new InvalidValue(why, () => null);

/** In seconds. */
export const duration = int.transform((value) =>
  value >= 0 ? value : new InvalidValue('is below 0', () => 0),
);

/** What somebody is to recognise a record by. @param what the record is. */
export const titleOf = (what: string) =>
  text.transform((value) =>
    /\S/.test(value) ? value : new InvalidValue('is blank', ({ id }) => `${what} ${id}`),
  );

const notNegative = unless((value: number) => value >= 0, 'is below 0');

/** What is counted, such as seconds or repetitions. */
export const count = int.nullish().transform(notNegative);

/** What is measured, and begins at 0. */
export const amount = number.nullish().transform(notNegative);

export const percent = number
  .nullish()
  .transform(unless((value) => value >= 0 && value <= 100, 'is not between 0 and 100'));

/** A MAC address, in upper case and with colons, however it was written. */
export const macAddress = name.nullish().transform((value) => {
  if (value == null) return value;
  const digits = value.replace(/[-:.\s]/g, '').toUpperCase();
  if (!/^[0-9A-F]{12}$/.test(digits)) return new InvalidValue('is no MAC address', () => null);
  return digits.replace(/..(?!$)/g, '$&:');
});

type InsteadOf<Value> = Value extends InvalidValue<infer Instead> ? Instead : never;

type Settled<Row> = {
  [Name in keyof Row]: Exclude<Row[Name], InvalidValue> | InsteadOf<Row[Name]>;
};

/**
 * A row without its senseless values, and what is to be said of those.
 * @param of the part of the record that the row is, for what is said.
 */
export function replaceInvalid<Row extends object>(
  row: Row,
  of = '',
): { row: Settled<Row>; notes: string[] } {
  const notes: string[] = [];
  const entries = Object.entries(row).map(([name, value]) => {
    if (!(value instanceof InvalidValue)) return [name, value];
    const instead = value.instead(row);
    notes.push(`${of}${name}: ${value.why}; ${JSON.stringify(instead)} here.`);
    return [name, instead];
  });
  // The same names, with what is put in the place of each senseless value.
  return { row: Object.fromEntries(entries) as Settled<Row>, notes };
}

/** The segments of a template or session. */
export const segments = <S extends z.ZodType>(segment: S) => z.array(segment).max(1000);
