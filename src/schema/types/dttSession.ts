/** Training sessions with their segments. */

import { builder } from '../builder.ts';
import { recordField, viewerListField } from '../fields.ts';
import { children, derive, findNewest, onEachChange, oneOf, toOne } from '../loading/reads.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { User } from './user.ts';

export const DttSession = builder.prismaNode('DttSession', {
  description: 'A training session on a trainer device (DTT session).',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Public identifier.' }),
    ownerId: t.exposeInt('ownerId', { description: 'Integer id of the user whom it belongs to.' }),
    name: t.exposeString('name', { nullable: true, description: 'Name.' }),
    passed: t.exposeBoolean('passed', { nullable: true, description: 'Whether it was passed overall.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it took place.' }),
    trainerId: t.int({
      description: 'Integer id of the trainer device.',
      ...oneOf('trainerId', 'goneTrainerId'),
    }),
    templateId: t.int({
      nullable: true,
      description: 'Integer id of the template that was used, if any.',
      ...derive(
        ['templateId', 'goneTemplateId'],
        (row: { templateId: number | null; goneTemplateId: number | null }) =>
          row.templateId ?? row.goneTemplateId,
      ),
    }),
  }),
});

export const DttSessionConnection = builder.connectionObject({
  type: DttSession,
  name: 'DttSessionConnection',
});

builder.prismaObjectFields(DttSession, (t) => ({
  segments: t.field({
    type: [TrainerSegment],
    description: 'The results per segment, in order.',
    ...children<'TrainerSegment'>('segments', { order: 'asc' }),
  }),
  owner: t.field({
    type: User,
    nullable: true,
    description: 'The user whom it belongs to.',
    ...toOne('User', 'ownerId'),
  }),
  trainer: t.field({
    type: DttDevice,
    nullable: true,
    description: 'The trainer device; null when it is no longer one of the viewer’s.',
    ...toOne('DttDevice', 'trainerId'),
  }),
  template: t.field({
    type: DttTemplate,
    nullable: true,
    description:
      'The template that was used; null when there was none, or it is no longer one of the viewer’s.',
    ...toOne('DttTemplate', 'templateId'),
  }),
}));

const TrainerSegmentType = builder.enumType('TrainerSegmentType', {
  description: 'Kind of a segment of a training session.',
  values: {
    repetition: { description: 'A number of repetitions.' },
    endurance: { description: 'Holding on for a time.' },
    freeform: { description: 'Without a target.' },
    bounce: { description: 'Bouncing.' },
  } as const,
});

const TrainerSegment = builder.prismaNode('TrainerSegment', {
  description: 'The result of one segment of a training session. What was not measured is null.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    type: t.field({
      type: TrainerSegmentType,
      description: 'Kind of segment.',
      // The service has these kinds, and no others that are known.
      ...derive(['type'], ({ type }: { type: string }) => type as typeof TrainerSegmentType.$inferType),
    }),
    passed: t.exposeBoolean('passed', { nullable: true, description: 'Whether it was passed.' }),
    percentGrade: t.exposeFloat('percentGrade', {
      nullable: true,
      description: 'Performance grade, in percent.',
    }),
    points: t.exposeInt('points', { nullable: true, description: 'Points earned.' }),
    durationMeasured: t.exposeInt('durationMeasured', {
      nullable: true,
      description: 'Time taken, in seconds.',
    }),
    durationTarget: t.exposeInt('durationTarget', {
      nullable: true,
      description: 'Time to take, in seconds.',
    }),
    repsMeasured: t.exposeInt('repsMeasured', { nullable: true, description: 'Full cycles done.' }),
    repsTarget: t.exposeInt('repsTarget', { nullable: true, description: 'Full cycles to do.' }),
    speedMeasured: t.exposeFloat('speedMeasured', {
      nullable: true,
      description: 'Speed reached; the unit is not known.',
    }),
    speedTarget: t.exposeFloat('speedTarget', {
      nullable: true,
      description: 'Speed to reach; the unit is not known.',
    }),
    targetDepth: t.exposeFloat('targetDepth', {
      nullable: true,
      description: 'Depth to reach, in millimetres or percent: the service has not settled which.',
    }),
    targetWindow: t.exposeFloat('targetWindow', {
      nullable: true,
      description: 'Tolerance around the target depth, in the unit of `targetDepth`.',
    }),
    longestDeepthroat: t.exposeFloat('longestDeepthroat', {
      nullable: true,
      description: 'Cumulative time in the target depth window, in milliseconds.',
    }),
    strokeLength: t.exposeFloat('strokeLength', {
      nullable: true,
      description: 'Length of a stroke; the unit is not known.',
    }),
    distanceTravelled: t.exposeFloat('distanceTravelled', {
      nullable: true,
      description: 'Total distance, in metres.',
    }),
    order: t.exposeInt('order', { description: 'Place in the session.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was recorded, null where a mirror does not know it.',
    }),
  }),
});

const latestDttSession = {
  type: DttSession,
  nullable: true,
  description: "The viewer's newest training session, null when there is none.",
  resolve: findNewest('DttSession'),
} as const;

builder.queryFields((t) => ({
  dttSession: t.field(recordField('DttSession', DttSession, 'A training session of the viewer.')),
  dttSessions: t.connection(
    viewerListField('DttSession', DttSession, "The viewer's training sessions, newest first."),
    DttSessionConnection,
  ),
  latestDttSession: t.field(latestDttSession),
}));

builder.subscriptionFields((t) => ({
  latestDttSession: t.field({
    ...latestDttSession,
    ...onEachChange(latestDttSession.resolve),
  }),
}));
