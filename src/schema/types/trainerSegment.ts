/** Segments of training sessions. */

import { builder } from '../builder.ts';
import { record } from '../fields.ts';
import { derive, toOne } from '../loading/reads.ts';
import type { RecordRef } from '../loading/rows.ts';
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

export const TrainerSegment: RecordRef<'TrainerSegment'> = record('TrainerSegment', {
  description: 'The result of one segment of a training session. What was not measured is null.',
  columns: {
    rawType: {
      column: 'type',
      description:
        "Kind of segment in the service's own word, such as `repetition`. The REST interface calls it `type`.",
    },
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
      description: 'The training session that it is a part of.',
      ...toOne(DttSession, 'sessionId'),
    }),
  }),
});
