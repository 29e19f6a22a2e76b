/** Statistics of lock sessions. */

import { builder } from '../builder.ts';
import { nullOnlyWithError } from '../fields.ts';
import { filterRef } from '../filtering/refs.ts';
import { toOne } from '../loading/reads.ts';
import {
  type FigureRow,
  type GroupRow,
  readStatistics,
  type Statistics,
  type Subject,
} from '../loading/statistics.ts';
import { LockTemplate } from './lockTemplate.ts';
import { periodKeys, StatsPeriod, statsArguments } from './statsPeriod.ts';

const LockSessionStatsKey = builder.enumType('LockSessionStatsKey', {
  description: 'What lock sessions can be grouped by.',
  values: {
    ...periodKeys,
    TEMPLATE: { value: 'templateId', description: 'By the template that they were started from, if any.' },
    STATE: { value: 'lockState', description: 'By their state.' },
  } as const,
});

const sessions = { of: 'rows' } as const;

const subject = {
  model: 'LockSession',
  parts: 'segments',
  time: { field: 'startedAt', column: 'startDate' },
  types: { group: 'LockSessionStatsGroup', total: 'LockSessionStatsTotal' },
  figures: {
    sessionCount: { ...sessions, does: 'count' },
    activeSessionCount: { ...sessions, does: 'count', column: 'isActive', is: true },
    averageDurationSeconds: { ...sessions, does: 'mean', column: 'duration' },
    totalDurationSeconds: { ...sessions, does: 'sum', column: 'duration' },
    firstSessionAt: { ...sessions, does: 'first', column: 'startDate' },
    lastSessionAt: { ...sessions, does: 'last', column: 'startDate' },
    segmentCount: { of: 'parts', does: 'count' },
  },
  keys: { templateId: ['templateId'], lockState: ['lockState'] },
  partKeys: {},
} as const satisfies Subject<'LockSession'>;

const LockSessionFigures = builder.interfaceRef<FigureRow<typeof subject>>('LockSessionFigures').implement({
  description:
    'Figures of lock sessions. An average or a sum of none is null. Sums may go beyond what an Int can hold.',
  fields: (t) => ({
    sessionCount: t.exposeInt('sessionCount', { description: 'How many sessions.' }),
    activeSessionCount: t.exposeInt('activeSessionCount', {
      description: 'How many of them are under way: one at most.',
    }),
    averageDurationSeconds: t.exposeFloat('averageDurationSeconds', {
      nullable: true,
      description: 'How long they last on average, in seconds.',
    }),
    totalDurationSeconds: t.exposeFloat('totalDurationSeconds', {
      nullable: true,
      description: 'How long they last together, in seconds.',
    }),
    firstSessionAt: t.expose('firstSessionAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the first session started.',
    }),
    lastSessionAt: t.expose('lastSessionAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the last session started.',
    }),
    segmentCount: t.exposeInt('segmentCount', { description: 'How many events there are in their history.' }),
  }),
});

const Total = builder.objectRef<FigureRow<typeof subject>>(subject.types.total).implement({
  description: 'The figures of all sessions together.',
  interfaces: [LockSessionFigures],
});

const Group = builder.objectRef<GroupRow<typeof subject>>(subject.types.group).implement({
  description: 'The figures of a group of sessions. Keys that the sessions were not grouped by are null.',
  interfaces: [LockSessionFigures],
  fields: (t) => ({
    period: t.expose('period', {
      type: StatsPeriod,
      nullable: true,
      description:
        'The day, week or month in which they started. Null as well for sessions whose time is before the year 1, after the ' +
        'year 9999 or infinite.',
    }),
    templateId: t.exposeInt('templateId', {
      nullable: true,
      description: 'Integer id of the template; null as well for sessions without one.',
    }),
    template: t.field({
      type: LockTemplate,
      nullable: true,
      description: 'The template; null as well for sessions without one.',
      ...toOne('LockTemplate', 'templateId'),
    }),
    lockState: t.exposeString('lockState', { nullable: true, description: 'The state.' }),
  }),
});

const Stats = builder.objectRef<Statistics<typeof subject>>('LockSessionStats').implement({
  description: 'Statistics of lock sessions.',
  fields: (t) => ({
    timeZone: t.exposeString('timeZone', { description: 'The time zone by whose clocks periods begin.' }),
    total: t.expose('total', { type: Total, description: 'All sessions together.' }),
    groups: t.expose('groups', {
      type: [Group],
      description:
        'The groups, none without `by`: from the first period to the last, and then by the other keys in ascending order.',
    }),
  }),
});

builder.queryField('lockSessionStats', (t) =>
  t.field({
    type: Stats,
    nullable: true,
    description: "Statistics of the viewer's lock sessions, by when they started.",
    extensions: { ...nullOnlyWithError },
    args: {
      where: t.arg({
        type: filterRef('LockSession'),
        description: 'Only sessions that meet these conditions.',
      }),
      by: t.arg({
        type: [LockSessionStatsKey],
        defaultValue: [],
        description: 'What the sessions are grouped by: each group has one of each.',
      }),
      ...statsArguments,
    },
    resolve: readStatistics(subject),
  }),
);
