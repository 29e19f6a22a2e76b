/** Statistics of training sessions. */

import { builder } from '../builder.ts';
import { orNull } from '../fields.ts';
import { derive, toOne } from '../loading/reads.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { addStatistics } from './statistics.ts';
import { TrainerSegmentType, trainerSegmentTypeOf } from './trainerSegment.ts';

interface Keys {
  readonly templateId: number | null;
  readonly trainerId: number | null;
  readonly rawSegmentType: string | null;
}

const pending = 'Without what a mirror does not have yet: see `detailsPendingCount`.';

const Group = addStatistics<Keys>({
  model: 'DttSession',
  noun: 'training sessions',
  descriptions: {
    query: "Statistics of the viewer's training sessions.",
    figures:
      'Figures of training sessions and their segments. An average or a sum is null where nothing was measured. Sums may go beyond what an Int can hold.',
    total: 'All sessions together, each counted once.',
    period:
      'The day, week or month. Null as well for sessions whose time is before the year 1, after the year 9999 or infinite.',
  },
  parts: 'segments',
  time: { field: 'createdAt', column: 'createdAt' },
  by: {
    TEMPLATE: { value: 'templateId', description: 'By the template that was used, if any.' },
    TRAINER: { value: 'trainerId', description: 'By the trainer device.' },
    SEGMENT_TYPE: {
      value: 'rawSegmentType',
      description:
        'By the kind of segments. A session counts in each group of which it has segments. Figures of segments are those of the segments in the group.',
    },
  },
  keys: { templateId: ['templateId', 'goneTemplateId'], trainerId: ['trainerId', 'goneTrainerId'] },
  partKeys: { rawSegmentType: 'type' },
  figures: {
    sessionCount: { of: 'rows', does: 'count', description: 'How many sessions.' },
    passedSessionCount: {
      ...{ of: 'rows', does: 'count', column: 'passed', is: true },
      description: 'How many sessions were passed. Of others it may not be known.',
    },
    failedSessionCount: {
      ...{ of: 'rows', does: 'count', column: 'passed', is: false },
      description: 'How many sessions were not passed.',
    },
    detailsPendingCount: {
      ...{ of: 'rows', does: 'count', column: 'detailsPending', is: true },
      description:
        'For how many sessions a mirror does not have the details yet. The sums of repetitions, durations and distances leave out their segments.',
    },
    firstSessionAt: {
      ...{ of: 'rows', does: 'first', column: 'createdAt' },
      description: 'When the first session took place.',
    },
    lastSessionAt: {
      ...{ of: 'rows', does: 'last', column: 'createdAt' },
      description: 'When the last session took place.',
    },
    segmentCount: { of: 'parts', does: 'count', description: 'How many segments.' },
    passedSegmentCount: {
      ...{ of: 'parts', does: 'count', column: 'passed', is: true },
      description: 'How many segments were passed.',
    },
    failedSegmentCount: {
      ...{ of: 'parts', does: 'count', column: 'passed', is: false },
      description: 'How many segments were not passed.',
    },
    averageGradePercent: {
      ...{ of: 'parts', does: 'mean', column: 'percentGrade' },
      description: 'Average performance grade of the segments that have one, in percent.',
    },
    averagePoints: {
      ...{ of: 'parts', does: 'mean', column: 'points' },
      description: 'Average points of the segments that have some.',
    },
    totalPoints: { of: 'parts', does: 'sum', column: 'points', description: 'Points earned.' },
    totalRepsMeasured: {
      ...{ of: 'parts', does: 'sum', column: 'repsMeasured' },
      description: `Full cycles done. ${pending}`,
    },
    totalDurationMeasuredSeconds: {
      ...{ of: 'parts', does: 'sum', column: 'durationMeasured' },
      description: `Time taken, in seconds. ${pending}`,
    },
    totalDistanceTravelledMetres: {
      ...{ of: 'parts', does: 'sum', column: 'distanceTravelled' },
      description: `Distance, in metres. ${pending}`,
    },
  },
});

builder.objectFields(Group, (t) => ({
  templateId: t.exposeInt(
    'templateId',
    orNull('Integer id of the template; null as well for sessions without one.'),
  ),
  template: t.field({
    description: 'The template; null as well when it is no longer one of the viewer’s.',
    ...toOne(DttTemplate, 'templateId'),
  }),
  trainerId: t.exposeInt('trainerId', orNull('Integer id of the trainer device.')),
  trainer: t.field({
    description: 'The trainer device; null as well when it is no longer one of the viewer’s.',
    ...toOne(DttDevice, 'trainerId'),
  }),
  segmentType: t.field({
    type: TrainerSegmentType,
    ...orNull('The kind of segments. Several groups may be `UNKNOWN`, each for another kind.'),
    ...derive(['rawSegmentType'], ({ rawSegmentType }: { rawSegmentType: string | null }) =>
      rawSegmentType === null ? null : trainerSegmentTypeOf(rawSegmentType),
    ),
  }),
  rawSegmentType: t.exposeString(
    'rawSegmentType',
    orNull("The kind of segments in the service's own word, such as `repetition`."),
  ),
}));
