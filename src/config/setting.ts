/** What a setting is, and how the usual ones are written. The core's are in `config.ts`; each extension has its own. */

import { z } from 'zod';
import { complaintAboutUrl, encodedPassword, hasCutPassword, isDatabaseUrl } from './databaseUrl.ts';

export interface Setting<T> {
  /** What the variable is for; docs/configuration.md has the same text. */
  readonly description: string;
  /** The values that the variable takes, for the message about a wrong value. */
  readonly takes: string;
  readonly schema: z.ZodType<T>;
  /** Advice about a wrong value, if the value shows the mistake. */
  readonly advice?: (value: string) => string | undefined;
  /** Whether the value may have a secret: one that is not valid is not printed. */
  readonly secret?: boolean;
  /** Whether the value has several items, with spaces or line breaks between them. */
  readonly isList?: boolean;
}

export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The values of settings, by their names. */
export type ValuesOf<Some extends Settings> = {
  readonly [Each in keyof Some]: z.output<Some[Each]['schema']>;
};

export const setting = <T>(description: string, takes: string, schema: z.ZodType<T>): Setting<T> => ({
  description,
  takes,
  schema,
});

export const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(min).max(max));

export const integerSetting = (
  description: string,
  [min, max]: readonly [number, number],
  byDefault: number,
) => setting(description, `an integer from ${min} to ${max}`, integer(min, max).default(byDefault));

export const onOffSetting = (description: string, byDefault: 'on' | 'off') =>
  setting(description, 'on or off', z.enum(['on', 'off']).default(byDefault));

export const databaseUrl = (description: string) => ({
  ...setting(
    description,
    'a URL such as postgresql://user:password@host:5432/database',
    z.string().refine(isDatabaseUrl).optional(),
  ),
  advice: adviceOnUrl,
  secret: true,
});

/** Advice about the URL of a database, without the URL; undefined if there is none. */
export function adviceOnUrl(url: string): string | undefined {
  return hasCutPassword(url) ? encodedPassword : complaintAboutUrl(url);
}
