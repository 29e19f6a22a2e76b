/** Segments of training sessions. */

import { builder } from '../builder.ts';
import { orNull } from '../fields.ts';
import { derive, toOne } from '../loading/reads.ts';
import { DttSession } from './dttSession.ts';

export const TrainerSegmentType = builder.enumType('TrainerSegmentType', {
  description: 'Kind of a segment of a training session.',
  values: {
    REPETITION: { description: 'A number of repetitions.' },
    ENDURANCE: { description: 'Holding on for a time.' },
    FREEFORM: { description: 'As one likes, even where there is a target.' },
    BOUNCE: { description: 'Bouncing.' },
    UNKNOWN: { description: 'A kind that this schema does not know yet; `rawType` says which.' },
  } as const,
});

/** The kinds of segments by the service's own names. */
const trainerSegmentTypes: ReadonlyMap<string, typeof TrainerSegmentType.$inferType> = new Map([
  ['repetition', 'REPETITION'],
  ['endurance', 'ENDURANCE'],
  ['freeform', 'FREEFORM'],
  ['bounce', 'BOUNCE'],
] as const);

export const trainerSegmentTypeOf = (rawType: string) => trainerSegmentTypes.get(rawType) ?? 'UNKNOWN';

export const TrainerSegment = builder.prismaNode('TrainerSegment', {
  description: 'The result of one segment of a training session. What was not measured is null.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    type: t.field({
      type: TrainerSegmentType,
      description: 'Kind of segment.',
      ...derive(['type'], ({ type }: { type: string }) => trainerSegmentTypeOf(type)),
    }),
    rawType: t.exposeString('type', {
      description:
        "Kind of segment in the service's own word, such as `repetition`. The REST interface calls it `type`.",
    }),
    passed: t.exposeBoolean('passed', orNull('Whether it was passed.')),
    points: t.exposeInt('points', orNull('Points earned.')),
    order: t.exposeInt('order', { description: 'Place in the session.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      ...orNull('When it was recorded, null where nobody said so.'),
    }),
  }),
});

// Measurements and targets.
builder.prismaObjectFields(TrainerSegment, (t) => ({
  gradePercent: t.exposeFloat('percentGrade', orNull('Performance grade, in percent.')),
  durationMeasuredSeconds: t.exposeInt('durationMeasured', orNull('Time taken, in seconds.')),
  durationTargetSeconds: t.exposeInt('durationTarget', orNull('Time to take, in seconds.')),
  repsMeasured: t.exposeInt('repsMeasured', orNull('Full cycles done.')),
  repsTarget: t.exposeInt('repsTarget', orNull('Full cycles to do.')),
  speedMeasured: t.exposeFloat('speedMeasured', orNull('Speed reached; the unit is not known.')),
  speedTarget: t.exposeFloat('speedTarget', orNull('Speed to reach; the unit is not known.')),
  targetDepth: t.exposeFloat(
    'targetDepth',
    orNull('Depth to reach, in millimetres or percent: the service has not settled which.'),
  ),
  targetWindow: t.exposeFloat(
    'targetWindow',
    orNull('Tolerance around the target depth, in the unit of `targetDepth`.'),
  ),
  timeInTargetDepthMilliseconds: t.exposeFloat(
    'longestDeepthroat',
    orNull(
      'Cumulative time in the target depth window, in milliseconds. The REST interface calls it `longestDeepthroat`.',
    ),
  ),
  strokeLength: t.exposeFloat('strokeLength', orNull('Length of a stroke; the unit is not known.')),
  distanceTravelledMetres: t.exposeFloat('distanceTravelled', orNull('Total distance, in metres.')),
}));

builder.prismaObjectFields(TrainerSegment, (t) => ({
  session: t.field({
    type: DttSession,
    ...orNull('The training session that it is a part of.'),
    ...toOne('DttSession', 'sessionId'),
  }),
}));
