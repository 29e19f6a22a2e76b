/** Statistics of training sessions. */

import { builder } from '../builder.ts';
import { nullOnlyWithError } from '../fields.ts';
import { filterRef } from '../filtering/refs.ts';
import { derive, toOne } from '../loading/reads.ts';
import {
  type FigureRow,
  type GroupRow,
  readStatistics,
  type Statistics,
  type Subject,
} from '../loading/statistics.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { periodKeys, StatsPeriod, statsArguments } from './statsPeriod.ts';
import { TrainerSegmentType, trainerSegmentTypeOf } from './trainerSegment.ts';

const DttSessionStatsKey = builder.enumType('DttSessionStatsKey', {
  description: 'What training sessions can be grouped by.',
  values: {
    ...periodKeys,
    TEMPLATE: { value: 'templateId', description: 'By the template that was used, if any.' },
    TRAINER: { value: 'trainerId', description: 'By the trainer device.' },
    SEGMENT_TYPE: {
      value: 'rawSegmentType',
      description:
        'By the kind of segments. A session counts in each group of which it has segments. Figures of segments are those of the segments in the group.',
    },
  } as const,
});

const sessions = { of: 'rows' } as const;
const segments = { of: 'parts' } as const;

const subject = {
  model: 'DttSession',
  parts: 'segments',
  time: { field: 'createdAt', column: 'createdAt' },
  types: { group: 'DttSessionStatsGroup', total: 'DttSessionStatsTotal' },
  figures: {
    sessionCount: { ...sessions, does: 'count' },
    passedSessionCount: { ...sessions, does: 'count', column: 'passed', is: true },
    failedSessionCount: { ...sessions, does: 'count', column: 'passed', is: false },
    detailsPendingCount: { ...sessions, does: 'count', column: 'detailsPending', is: true },
    firstSessionAt: { ...sessions, does: 'first', column: 'createdAt' },
    lastSessionAt: { ...sessions, does: 'last', column: 'createdAt' },
    segmentCount: { ...segments, does: 'count' },
    passedSegmentCount: { ...segments, does: 'count', column: 'passed', is: true },
    failedSegmentCount: { ...segments, does: 'count', column: 'passed', is: false },
    averageGradePercent: { ...segments, does: 'mean', column: 'percentGrade' },
    averagePoints: { ...segments, does: 'mean', column: 'points' },
    totalPoints: { ...segments, does: 'sum', column: 'points' },
    totalRepsMeasured: { ...segments, does: 'sum', column: 'repsMeasured' },
    totalDurationMeasuredSeconds: { ...segments, does: 'sum', column: 'durationMeasured' },
    totalDistanceTravelledMetres: { ...segments, does: 'sum', column: 'distanceTravelled' },
  },
  keys: { templateId: ['templateId', 'goneTemplateId'], trainerId: ['trainerId', 'goneTrainerId'] },
  partKeys: { rawSegmentType: 'type' },
} as const satisfies Subject<'DttSession'>;

type Figures = FigureRow<typeof subject>;

const pending = 'Without what a mirror does not have yet: see `detailsPendingCount`.';

const DttSessionFigures = builder.interfaceRef<Figures>('DttSessionFigures').implement({
  description:
    'Figures of training sessions and their segments. An average or a sum is null where nothing was measured. Sums may go beyond what an Int can hold.',
  fields: (t) => ({
    sessionCount: t.exposeInt('sessionCount', { description: 'How many sessions.' }),
    passedSessionCount: t.exposeInt('passedSessionCount', {
      description: 'How many sessions were passed. Of others it may not be known.',
    }),
    failedSessionCount: t.exposeInt('failedSessionCount', {
      description: 'How many sessions were not passed.',
    }),
    detailsPendingCount: t.exposeInt('detailsPendingCount', {
      description:
        'For how many sessions a mirror does not have the details yet. The sums of repetitions, durations and distances leave out their segments.',
    }),
    firstSessionAt: t.expose('firstSessionAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the first session took place.',
    }),
    lastSessionAt: t.expose('lastSessionAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the last session took place.',
    }),
    segmentCount: t.exposeInt('segmentCount', { description: 'How many segments.' }),
    passedSegmentCount: t.exposeInt('passedSegmentCount', { description: 'How many segments were passed.' }),
    failedSegmentCount: t.exposeInt('failedSegmentCount', {
      description: 'How many segments were not passed.',
    }),
    averageGradePercent: t.exposeFloat('averageGradePercent', {
      nullable: true,
      description: 'Average performance grade of the segments that have one, in percent.',
    }),
    averagePoints: t.exposeFloat('averagePoints', {
      nullable: true,
      description: 'Average points of the segments that have some.',
    }),
    totalPoints: t.exposeFloat('totalPoints', { nullable: true, description: 'Points earned.' }),
    totalRepsMeasured: t.exposeFloat('totalRepsMeasured', {
      nullable: true,
      description: `Full cycles done. ${pending}`,
    }),
    totalDurationMeasuredSeconds: t.exposeFloat('totalDurationMeasuredSeconds', {
      nullable: true,
      description: `Time taken, in seconds. ${pending}`,
    }),
    totalDistanceTravelledMetres: t.exposeFloat('totalDistanceTravelledMetres', {
      nullable: true,
      description: `Distance, in metres. ${pending}`,
    }),
  }),
});

const Total = builder.objectRef<Figures>(subject.types.total).implement({
  description: 'The figures of all sessions together.',
  interfaces: [DttSessionFigures],
});

const StatsGroup = builder.objectRef<GroupRow<typeof subject>>(subject.types.group).implement({
  description: 'The figures of a group of sessions. Keys that the sessions were not grouped by are null.',
  interfaces: [DttSessionFigures],
  fields: (t) => ({
    period: t.expose('period', {
      type: StatsPeriod,
      nullable: true,
      description:
        'The day, week or month. Null as well for sessions whose time is before the year 1, after the year 9999 or infinite.',
    }),
    templateId: t.exposeInt('templateId', {
      nullable: true,
      description: 'Integer id of the template; null as well for sessions without one.',
    }),
    template: t.field({
      type: DttTemplate,
      nullable: true,
      description: 'The template; null as well when it is no longer one of the viewer’s.',
      ...toOne('DttTemplate', 'templateId'),
    }),
    trainerId: t.exposeInt('trainerId', { nullable: true, description: 'Integer id of the trainer device.' }),
    trainer: t.field({
      type: DttDevice,
      nullable: true,
      description: 'The trainer device; null as well when it is no longer one of the viewer’s.',
      ...toOne('DttDevice', 'trainerId'),
    }),
    segmentType: t.field({
      type: TrainerSegmentType,
      nullable: true,
      description: 'The kind of segments. Several groups may be `UNKNOWN`, each for another kind.',
      ...derive(['rawSegmentType'], ({ rawSegmentType }: { rawSegmentType: string | null }) =>
        rawSegmentType === null ? null : trainerSegmentTypeOf(rawSegmentType),
      ),
    }),
    rawSegmentType: t.exposeString('rawSegmentType', {
      nullable: true,
      description: "The kind of segments in the service's own word, such as `repetition`.",
    }),
  }),
});

const Stats = builder.objectRef<Statistics<typeof subject>>('DttSessionStats').implement({
  description: 'Statistics of training sessions.',
  fields: (t) => ({
    timeZone: t.exposeString('timeZone', { description: 'The time zone by whose clocks periods begin.' }),
    total: t.expose('total', { type: Total, description: 'All sessions together, each counted once.' }),
    groups: t.expose('groups', {
      type: [StatsGroup],
      description:
        'The groups, none without `by`: from the first period to the last, and then by the other keys in ascending order.',
    }),
  }),
});

builder.queryField('dttSessionStats', (t) =>
  t.field({
    type: Stats,
    nullable: true,
    description: "Statistics of the viewer's training sessions.",
    extensions: { ...nullOnlyWithError },
    args: {
      where: t.arg({
        type: filterRef('DttSession'),
        description: 'Only sessions that meet these conditions.',
      }),
      by: t.arg({
        type: [DttSessionStatsKey],
        defaultValue: [],
        description: 'What the sessions are grouped by: each group has one of each.',
      }),
      ...statsArguments,
    },
    resolve: readStatistics(subject),
  }),
);
