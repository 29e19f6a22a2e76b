/** Training sessions with their segments and their statistics. */

import { builder } from '../builder.ts';
import {
  addViewerField,
  children,
  derive,
  findNewest,
  firstNonNull,
  listedRecord,
  record,
  requiredFirst,
  toOne,
} from '../fields.ts';
import { addStatistics, parts, records } from '../statistics.ts';
import { ownerField } from './user.ts';

listedRecord('DttSession', {
  description: 'A training session on a trainer device (DTT session).',
  one: 'One of your training sessions.',
  all: 'Your training sessions, newest first.',
  columns: {
    bubbleId: 'Public identifier.',
    ownerId: 'Integer id of its owner.',
    name: 'Name.',
    passed: 'Whether it was passed overall.',
    createdAt: 'When it took place: the one time that the service has of a session.',
  },
  fields: (t) => ({
    segments: t.field({
      description: 'The results per segment, in order.',
      ...children('TrainerSegment', 'segments', { order: 'asc' }),
    }),
    owner: t.field(ownerField),
    trainerId: t.int({
      description: 'Integer id of the trainer device.',
      ...requiredFirst('trainerId', 'goneTrainerId'),
    }),
    trainer: t.field({
      description: 'The trainer device; null when it is no longer one of yours.',
      ...toOne('DttDevice', 'trainerId'),
    }),
    templateId: t.int({
      description: 'Integer id of the template that was used, if any.',
      ...firstNonNull('templateId', 'goneTemplateId'),
    }),
    template: t.field({
      description: 'The template that was used; null when there was none, or it is no longer one of yours.',
      ...toOne('DttTemplate', 'templateId'),
    }),
  }),
});

addViewerField('latestDttSession', {
  description: 'Your newest training session, null when there is none.',
  ...findNewest('DttSession'),
});

const Group = addStatistics({
  model: 'DttSession',
  noun: 'training sessions',
  descriptions: {
    query: 'Statistics of your training sessions.',
    figures:
      'Figures of training sessions and their segments. An average or a sum is null where nothing was measured. Sums may go beyond what an Int can hold.',
    total: 'All sessions together, each counted once.',
    period:
      'The day, week or month. Null as well for sessions whose time is before the year 1, after the year 9999 or infinite.',
  },
  parts: 'segments',
  time: { field: 'createdAt', column: 'createdAt' },
  keys: {
    templateId: {
      columns: ['templateId', 'goneTemplateId'],
      by: ['TEMPLATE', 'By the template that was used, if any.'],
      type: 'Int',
      description: 'Integer id of the template; null as well for sessions without one.',
      link: {
        name: 'template',
        model: 'DttTemplate',
        description: 'The template; null as well when it is no longer one of yours.',
      },
    },
    trainerId: {
      columns: ['trainerId', 'goneTrainerId'],
      by: ['TRAINER', 'By the trainer device.'],
      type: 'Int',
      description: 'Integer id of the trainer device.',
      link: {
        name: 'trainer',
        model: 'DttDevice',
        description: 'The trainer device; null as well when it is no longer one of yours.',
      },
    },
    rawSegmentType: {
      partColumn: 'type',
      by: [
        'SEGMENT_TYPE',
        'By the kind of segments. A session counts in each group of which it has segments. Figures of segments are those of the segments in the group.',
      ],
      type: 'String',
      description: "The kind of segments in the service's own word, such as `repetition`.",
    },
  },
  figures: {
    sessionCount: records('count', 'How many sessions.'),
    passedSessionCount: records(
      'count',
      'How many sessions were passed. The result of others may be unknown.',
      'passed',
      true,
    ),
    failedSessionCount: records('count', 'How many sessions were not passed.', 'passed', false),
    detailsPendingCount: records(
      'count',
      'The number of sessions whose details are still to be read. The totals of repetitions, durations and distances leave out their segments.',
      'detailsPending',
      true,
    ),
    firstSessionAt: records('first', 'When the first session took place.', 'createdAt'),
    lastSessionAt: records('last', 'When the last session took place.', 'createdAt'),
    segmentCount: parts('count', 'How many segments.'),
    passedSegmentCount: parts('count', 'How many segments were passed.', 'passed', true),
    failedSegmentCount: parts('count', 'How many segments were not passed.', 'passed', false),
    averageGradePercent: parts(
      'mean',
      'Average performance grade of the segments that have one, in percent.',
      'percentGrade',
    ),
    averagePoints: parts('mean', 'Average points of the segments that have some.', 'points'),
    totalPoints: parts('sum', 'Points earned.', 'points'),
    totalRepsMeasured: parts('sum', `Full cycles done.`, 'repsMeasured'),
    totalDurationMeasuredSeconds: parts('sum', `Time taken, in seconds.`, 'durationMeasured'),
    totalDistanceTravelledMetres: parts('sum', `Distance, in metres.`, 'distanceTravelled'),
  },
});

builder.objectField(Group, 'segmentType', (t) =>
  t.field({
    type: TrainerSegmentType,
    nullable: true,
    description: 'The kind of segments. Several groups may be `UNKNOWN`, each for another kind.',
    ...derive<
      string,
      Readonly<Record<string, string | null>>,
      ReturnType<typeof trainerSegmentTypeOf> | null
    >(['rawSegmentType'], ({ rawSegmentType: type = null }) =>
      type === null ? null : trainerSegmentTypeOf(type),
    ),
  }),
);

const TrainerSegmentType = builder.enumType('TrainerSegmentType', {
  description: 'Kind of a segment of a training session.',
  values: {
    REPETITION: { description: 'A number of repetitions.' },
    ENDURANCE: { description: 'Holding on for a time.' },
    FREEFORM: { description: 'Free-form; targets are ignored.' },
    BOUNCE: { description: 'Bouncing.' },
    UNKNOWN: { description: 'A kind that this schema does not know; the raw text says which.' },
  } as const,
});

/** The kinds of segments by the service's own names. */
const trainerSegmentTypes: ReadonlyMap<string, typeof TrainerSegmentType.$inferType> = new Map([
  ['repetition', 'REPETITION'],
  ['endurance', 'ENDURANCE'],
  ['freeform', 'FREEFORM'],
  ['bounce', 'BOUNCE'],
] as const);

const trainerSegmentTypeOf = (rawType: string) => trainerSegmentTypes.get(rawType) ?? 'UNKNOWN';

record('TrainerSegment', {
  description: 'The result of one segment of a training session. What was not measured is null.',
  columns: {
    rawType: { column: 'type', description: "Kind of segment in the service's own word." },
    passed: 'Whether it was passed.',
    points: 'Points earned.',
    order: 'Place in the session.',
    createdAt: 'When it was recorded, null if it is not known.',
    gradePercent: { column: 'percentGrade', description: 'Performance grade, in percent.' },
    durationMeasuredSeconds: { column: 'durationMeasured', description: 'Time taken, in seconds.' },
    durationTargetSeconds: { column: 'durationTarget', description: 'Time to take, in seconds.' },
    repsMeasured: 'Full cycles done.',
    repsTarget: 'Full cycles to do.',
    speedMeasured: 'Speed reached; the unit is not known.',
    speedTarget: 'Speed to reach; the unit is not known.',
    targetDepth: 'Depth to reach, in millimetres or percent: the service has not settled which.',
    targetWindow: 'Tolerance around the target depth, in the unit of `targetDepth`.',
    timeInTargetDepthMilliseconds: {
      column: 'longestDeepthroat',
      description:
        'Cumulative time in the target depth window, in milliseconds. The REST interface calls it `longestDeepthroat`.',
    },
    strokeLength: 'Length of a stroke; the unit is not known.',
    distanceTravelledMetres: { column: 'distanceTravelled', description: 'Total distance, in metres.' },
  },
  fields: (t) => ({
    type: t.field({
      type: TrainerSegmentType,
      description: 'Kind of segment.',
      ...derive(['type'], ({ type }: { type: string }) => trainerSegmentTypeOf(type)),
    }),
    session: t.field({
      description: 'The training session it is part of.',
      ...toOne('DttSession', 'sessionId'),
    }),
  }),
});
