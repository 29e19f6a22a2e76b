/** The periods that statistics are grouped by. */

import { builder } from '../builder.ts';
import { groupLimit, type StatsPeriod as Shape } from '../loading/statistics.ts';

builder.scalarType('LocalDate', {
  description: 'A day of the calendar, such as `2026-02-17`.',
  specifiedByURL: 'https://scalars.graphql.org/andimarek/local-date.html',
});

export const StatsPeriod = builder.objectRef<Shape>('StatsPeriod').implement({
  description:
    'A day, a week or a month by the clocks of a time zone. It is as long as its clocks make it: a day may have 23 or 25 hours.',
  fields: (t) => ({
    date: t.expose('date', {
      type: 'LocalDate',
      description: 'The day, the Monday that the week begins with, or the first of the month.',
    }),
    from: t.expose('from', { type: 'DateTime', description: 'The instant at which it begins.' }),
    to: t.expose('to', { type: 'DateTime', description: 'The instant at which the next one begins.' }),
  }),
});

/** The arguments that all statistics have in common. */
export const statsArguments = builder.args((t) => ({
  timeZone: t.string({
    defaultValue: 'UTC',
    description:
      'By whose clocks days, weeks and months begin: the name of a time zone, such as `Europe/Berlin`. Weeks begin on Monday.',
  }),
  fill: t.boolean({
    defaultValue: false,
    description:
      'Whether periods without sessions have groups too, beside each of the other keys that occur: from the first session to the last, or ' +
      'from and to where `where` bounds their time.',
  }),
  maxGroups: t.int({
    defaultValue: groupLimit.default,
    description: `How many groups there may be: more are an error. An integer from 1 to ${groupLimit.highest}.`,
  }),
}));

/** The values of `by` that are units of periods. */
export const periodKeys = {
  DAY: { value: 'day', description: 'By day. At most one of `DAY`, `WEEK` and `MONTH`.' },
  WEEK: { value: 'week', description: 'By week, from Monday.' },
  MONTH: { value: 'month', description: 'By month.' },
} as const;
