/** Training sessions. */

import { builder } from '../builder.ts';
import { recordField, viewerListField } from '../fields.ts';
import { children, findNewest, firstNonNull, requiredFirst, toOne } from '../loading/reads.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { TrainerSegment } from './trainerSegment.ts';
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
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'When it took place: the one time that the service has of a session.',
    }),
    trainerId: t.int({
      description: 'Integer id of the trainer device.',
      ...requiredFirst('trainerId', 'goneTrainerId'),
    }),
    templateId: t.int({
      nullable: true,
      description: 'Integer id of the template that was used, if any.',
      ...firstNonNull('templateId', 'goneTemplateId'),
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

/** The field of `Query` and `User`. */
export const dttSessions = viewerListField(
  'DttSession',
  DttSession,
  "The viewer's training sessions, newest first.",
);

/** The field of `Query` and `User`. */
export const latestDttSession = {
  type: DttSession,
  nullable: true,
  description: "The viewer's newest training session, null when there is none.",
  ...findNewest('DttSession'),
} as const;

builder.queryFields((t) => ({
  dttSession: t.field(recordField('DttSession', DttSession, 'A training session of the viewer.')),
  dttSessions: t.connection(dttSessions, DttSessionConnection),
  latestDttSession: t.field(latestDttSession),
}));
