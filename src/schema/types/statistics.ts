/** Statistics: builds the types, arguments and query for a kind of records. */

import type { ListedType } from '../../database/models.ts';
import { builder } from '../builder.ts';
import { placeOf } from '../context.ts';
import { lowerFirst, nullOnlyWithError, toOne } from '../fields.ts';
import { filterRef } from '../filter.ts';
import type { RecordRef } from '../loading/rows.ts';
import {
  type Figure,
  type FigureRow,
  groupLimit,
  type Key,
  readStatistics,
  type StatsPeriod as Shape,
  type Statistics,
  type Subject,
  typesOf,
} from '../loading/statistics.ts';

interface Options extends Subject {
  readonly figures: Readonly<Record<string, Figure & { readonly description: string }>>;
  readonly keys: Readonly<Record<string, Key & ShownKey>>;
  /** The name of the records in descriptions. */
  readonly noun: string;
  readonly descriptions: Readonly<Record<'query' | 'figures' | 'total' | 'period', string>>;
}

/**
 * A figure of records or of their parts.
 * @param does how the column is aggregated. With `is`, a count counts only rows whose column has that value.
 */
const figureOf =
  (of: Figure['of']) => (does: Figure['does'], description: string, column?: string, is?: boolean) => ({
    ...{ of, does, description },
    ...(column !== undefined && { column }),
    ...(is !== undefined && { is }),
  });
export const records = figureOf('rows');
export const parts = figureOf('parts');

/** A key as clients see it. */
interface ShownKey {
  /** The value of `by`: its name and its description. */
  readonly by: readonly [string, string];
  readonly type: 'Int' | 'String';
  readonly description: string;
  /** The field for the record whose id it is. */
  readonly link?: {
    readonly name: string;
    type(): RecordRef<ListedType>;
    readonly description: string;
  };
}

builder.scalarType('LocalDate', {
  description: 'A day of the calendar, such as `2026-02-17`.',
  specifiedByURL: 'https://scalars.graphql.org/andimarek/local-date.html',
});

const StatsPeriod = builder.objectRef<Shape>('StatsPeriod').implement({
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
const statsArguments = builder.args((t) => ({
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

type StatisticsRef = ReturnType<ReturnType<typeof builder.objectRef<Statistics>>['implement']>;

/** The values of `by` that are units of periods. */
const periodKeys = {
  DAY: { value: 'day', description: 'By day. At most one of `DAY`, `WEEK` and `MONTH`.' },
  WEEK: { value: 'week', description: 'By week, from Monday.' },
  MONTH: { value: 'month', description: 'By month.' },
} as const;

/**
 * Adds the query for statistics of a model's records, with its types.
 * @returns the type of a group.
 */
export function addStatistics(options: Options) {
  const { model, noun, descriptions } = options;
  const interfaces = [figuresOf(options)];
  const types = typesOf(options);
  const total = builder.objectRef<FigureRow>(types.total).implement({
    description: 'The figures of all sessions together.',
    interfaces,
  });
  const group = builder.objectRef<FigureRow>(types.group).implement({
    description: 'The figures of a group of sessions. Keys that the sessions were not grouped by are null.',
    interfaces,
    fields: (t) => ({
      period: t.expose('period', { type: StatsPeriod, nullable: true, description: descriptions.period }),
    }),
  });
  for (const [name, { type, description, link }] of Object.entries(options.keys))
    builder.objectFields(group, (t) => ({
      [name]: t.expose(name, { type, nullable: true, description }),
      ...(link && {
        [link.name]: t.field({
          description: link.description,
          ...toOne<ListedType, string>(link.type(), name),
        }),
      }),
    }));
  const statistics = builder.objectRef<Statistics>(`${model}Stats`).implement({
    description: `Statistics of ${noun}.`,
    fields: (t) => ({
      timeZone: t.exposeString('timeZone', { description: 'The time zone by whose clocks periods begin.' }),
      total: t.expose('total', { type: total, description: descriptions.total }),
      groups: t.expose('groups', {
        type: [group],
        description:
          'The groups, none without `by`: from the first period to the last, and then by the other keys in ascending order.',
      }),
    }),
  });
  addQuery(options, statistics);
  return group;
}

const figuresOf = ({ model, figures, descriptions }: Options) =>
  builder.interfaceRef<FigureRow>(`${model}Figures`).implement({
    description: descriptions.figures,
    fields: (t) =>
      Object.fromEntries(
        Object.entries(figures).map(([name, { does, description }]) => {
          if (does === 'count') return [name, t.exposeInt(name, { description })];
          const type = does === 'first' || does === 'last' ? 'DateTime' : 'Float';
          return [name, t.expose(name, { type, nullable: true, description })];
        }),
      ),
  });

function addQuery(options: Options, type: StatisticsRef): void {
  const { model, noun, descriptions } = options;
  const values = Object.entries(options.keys).map(
    ([value, { by }]) => [by[0], { value, description: by[1] }] as const,
  );
  const keys = builder.enumType(`${model}StatsKey`, {
    description: `What ${noun} can be grouped by.`,
    values: { ...periodKeys, ...Object.fromEntries(values) },
  });
  builder.queryField(`${lowerFirst(model)}Stats`, (t) =>
    t.field({
      type,
      nullable: true,
      description: descriptions.query,
      extensions: { ...nullOnlyWithError },
      args: {
        where: t.arg({ type: filterRef(model), description: 'Only sessions that meet these conditions.' }),
        by: t.arg({
          type: [keys],
          defaultValue: [],
          description: 'What the sessions are grouped by: each group has one of each.',
        }),
        ...statsArguments,
      },
      resolve: (_root, args, context, info) =>
        context.loaders.once(placeOf(info), () => readStatistics(options, args, context, info)),
    }),
  );
}
